// Names in folders: made, renamed and removed. Blocking; any thread. All throw IoError (place "os.folder") with the
// path; nothing is sure to survive a power loss before sync_folder (headrace/os/file.h) of the folders concerned.
#pragma once

#include <filesystem>

namespace headrace::os {

// Makes the folder and its missing parents and syncs the folders that they were made in. Does nothing where it exists.
void create_folders(const std::filesystem::path& path);

// A file at `to` is replaced in one step, and so is an empty folder by a folder.
void rename_path(const std::filesystem::path& from, const std::filesystem::path& to);

// The two names change places in one step. False where the file system cannot do that.
bool exchange_names(const std::filesystem::path& one, const std::filesystem::path& other);

// False when there was no such file.
bool remove_file(const std::filesystem::path& path);

// Removes a folder with everything in it. Links are removed, never followed; a path that is no folder is refused
// with ENOTDIR. Nothing happens where nothing is.
void remove_tree(const std::filesystem::path& path);

}  // namespace headrace::os
