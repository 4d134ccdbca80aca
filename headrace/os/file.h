// Whole files, atomic publication and safe paths. Blocking; any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "headrace/os/mapped_file.h"
#include "headrace/os/output_file.h"

namespace headrace::os {

// The contents of a file, pipe or device. Throws IoError (place "os.read") when it cannot be read, EFBIG with both
// sizes when there are more than max_bytes.
std::string read_file(const std::filesystem::path& path, int64_t max_bytes = int64_t{1} << 30);

// After this returns the file holds `contents` on the disk; when it throws or the process dies, the old file (or none)
// is intact. A temporary name in the same folder, fsync, rename, fsync of the folder. A link at `path` is replaced.
void write_file_atomically(const std::filesystem::path& path, std::string_view contents);

enum class IfExists { kRefuse, kReplace };

// Renames the folder `temporary` (same file system; its files already synced by whoever wrote them) to `final_path`, so
// that readers see all of it or nothing. An empty folder at final_path is taken over. A full one is refused with
// EEXIST, or with kReplace swapped in one step where the file system can (else two renames), then deleted.
void publish_folder(const std::filesystem::path& temporary, const std::filesystem::path& final_path,
                    IfExists if_exists = IfExists::kRefuse);

// Waits until the entries of a folder (names, renames) are on the disk.
void sync_folder(const std::filesystem::path& folder);

// Bytes an ordinary user can still write where `path` lies or would lie (its nearest existing parent counts).
int64_t free_bytes(const std::filesystem::path& path);

// `folder / name` for a name that a stranger's file gives. Throws DataError (place "os.child_of") when the name is
// empty, absolute, holds ".." or a zero byte, or when links lead out of the folder. The one exception: the Hugging Face
// cache, whose <root>/snapshots/<revision>/ holds links into <root>/blobs/. The file need not exist.
std::filesystem::path child_of(const std::filesystem::path& folder, std::string_view name);

}  // namespace headrace::os
