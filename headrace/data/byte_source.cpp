#include "headrace/data/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::data {
namespace {

constexpr size_t kBlockBytes = 1 << 17;

class FileBytes final : public ByteSource {
 public:
  explicit FileBytes(const std::string& path) : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (descriptor_ < 0) throw IoError("data.open", "cannot open", path, errno, hint_for(errno));
    at_open_ = facts();
    if (S_ISDIR(at_open_.st_mode)) {
      ::close(descriptor_);
      throw IoError("data.open", "cannot read", path, EISDIR, "Name the files in it.");
    }
  }
  ~FileBytes() override { ::close(descriptor_); }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  size_t read(std::span<char> into) override {
    ssize_t got;
    do {
      got = ::read(descriptor_, into.data(), into.size());
    } while (got < 0 && errno == EINTR);
    if (got < 0) throw IoError("data.read", "cannot read at byte " + std::to_string(consumed_) + " of", path_, errno);
    consumed_ += got;
    if (got == 0) check_unchanged();
    return static_cast<size_t>(got);
  }
  int64_t bytes_consumed() const override { return consumed_; }

 private:
  static const char* hint_for(int error) {
    return error == ENOENT ? "If it was moved, name its new place: a run that goes on needs the same bytes only." : "";
  }

  struct stat facts() const {
    struct stat now {};
    ::fstat(descriptor_, &now);
    return now;
  }

  // What was read while somebody wrote is neither the old data nor the new.
  void check_unchanged() const {
    if (!S_ISREG(at_open_.st_mode)) return;
    const struct stat now = facts();
    const bool is_same_time =
        now.st_mtim.tv_sec == at_open_.st_mtim.tv_sec && now.st_mtim.tv_nsec == at_open_.st_mtim.tv_nsec;
    if (is_same_time && now.st_size == at_open_.st_size) return;
    throw DataError("data.read", path_ + " was changed while it was read: it had " + std::to_string(at_open_.st_size) +
                                     " bytes and now has " + std::to_string(now.st_size) + ", " +
                                     std::to_string(consumed_) + " were read. Wait until it is written, or copy it.");
  }

  std::string path_;
  int descriptor_;
  struct stat at_open_ {};
  int64_t consumed_ = 0;
};

class MemoryBytes final : public ByteSource {
 public:
  explicit MemoryBytes(std::string_view bytes) : bytes_(bytes) {}
  size_t read(std::span<char> into) override {
    const size_t length = std::min(into.size(), bytes_.size() - at_);
    std::memcpy(into.data(), bytes_.data() + at_, length);
    at_ += length;
    return length;
  }
  int64_t bytes_consumed() const override { return static_cast<int64_t>(at_); }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
};

// What both unpackers share: a block of packed input that is refilled when it is used up.
class PackedInput {
 public:
  explicit PackedInput(std::unique_ptr<ByteSource> file) : file_(std::move(file)), block_(kBlockBytes) {}
  // Unused input; reads on when there is none. Empty at the end of the file.
  std::span<const char> rest() {
    if (begin_ == end_) {
      begin_ = 0;
      end_ = file_->read(block_);
    }
    return {block_.data() + begin_, end_ - begin_};
  }
  void use(size_t bytes) { begin_ += bytes; }
  int64_t bytes_consumed() const { return file_->bytes_consumed(); }

 private:
  std::unique_ptr<ByteSource> file_;
  std::vector<char> block_;
  size_t begin_ = 0, end_ = 0;
};

[[noreturn]] void damaged(const std::string& path, int64_t at, std::string_view what, std::string_view why) {
  throw DataError("data.unpack", path + ": damaged " + std::string(what) + " data before byte " + std::to_string(at) +
                                     ": " + std::string(why) + ". Fetch or pack the file again.");
}

class GzipBytes final : public ByteSource {
 public:
  GzipBytes(const std::string& path, std::unique_ptr<ByteSource> file) : path_(path), input_(std::move(file)) {
    // 15 + 16: the largest window, gzip framing only.
    if (inflateInit2(&stream_, 15 + 16) != Z_OK) throw InternalError("data.unpack", "zlib does not start.");
  }
  ~GzipBytes() override { inflateEnd(&stream_); }
  GzipBytes(const GzipBytes&) = delete;
  GzipBytes& operator=(const GzipBytes&) = delete;

  size_t read(std::span<char> into) override {
    while (true) {
      const std::span<const char> packed = input_.rest();
      if (packed.empty()) {
        if (inside_) damaged(path_, input_.bytes_consumed(), "gzip", "the file ends early");
        return 0;
      }
      if (!inside_) inflateReset(&stream_);  // files may be several gzip streams, one after another
      inside_ = true;
      const size_t got = inflate_some(packed, into);
      if (got > 0) return got;
    }
  }
  int64_t bytes_consumed() const override { return input_.bytes_consumed(); }

 private:
  size_t inflate_some(std::span<const char> packed, std::span<char> into) {
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
    stream_.avail_in = static_cast<uInt>(packed.size());
    stream_.next_out = reinterpret_cast<Bytef*>(into.data());
    stream_.avail_out = static_cast<uInt>(std::min<size_t>(into.size(), 1 << 30));
    const uInt room = stream_.avail_out;
    const int status = inflate(&stream_, Z_NO_FLUSH);
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      damaged(path_, input_.bytes_consumed(), "gzip", stream_.msg ? stream_.msg : "not gzip");
    }
    input_.use(packed.size() - stream_.avail_in);
    if (status == Z_STREAM_END) inside_ = false;
    return room - stream_.avail_out;
  }

  std::string path_;
  PackedInput input_;
  z_stream stream_{};
  bool inside_ = false;  // a gzip stream has begun and not ended
};

class ZstdBytes final : public ByteSource {
 public:
  ZstdBytes(const std::string& path, std::unique_ptr<ByteSource> file)
      : path_(path), input_(std::move(file)), stream_(ZSTD_createDCtx(), &ZSTD_freeDCtx) {
    if (!stream_) throw InternalError("data.unpack", "zstd does not start.");
    // As much as `zstd --long` makes by default; more would let a file demand gigabytes.
    ZSTD_DCtx_setParameter(stream_.get(), ZSTD_d_windowLogMax, 27);
  }

  size_t read(std::span<char> into) override {
    while (true) {
      const std::span<const char> packed = input_.rest();
      if (packed.empty() && !inside_) return 0;
      ZSTD_inBuffer in{packed.data(), packed.size(), 0};
      ZSTD_outBuffer out{into.data(), into.size(), 0};
      const size_t status = ZSTD_decompressStream(stream_.get(), &out, &in);
      if (ZSTD_isError(status)) damaged(path_, input_.bytes_consumed(), "zstd", ZSTD_getErrorName(status));
      input_.use(in.pos);
      inside_ = status != 0;
      if (out.pos > 0) return out.pos;
      if (packed.empty()) damaged(path_, input_.bytes_consumed(), "zstd", "the file ends early");
    }
  }
  int64_t bytes_consumed() const override { return input_.bytes_consumed(); }

 private:
  std::string path_;
  PackedInput input_;
  std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> stream_;
  bool inside_ = false;
};

std::unique_ptr<ByteSource> unpack_by_name(const std::string& path, std::unique_ptr<ByteSource> bytes) {
  if (path.ends_with(".gz")) return std::make_unique<GzipBytes>(path, std::move(bytes));
  if (path.ends_with(".zst")) return std::make_unique<ZstdBytes>(path, std::move(bytes));
  return bytes;
}

}  // namespace

std::unique_ptr<ByteSource> open_bytes(const std::string& path) {
  return unpack_by_name(path, std::make_unique<FileBytes>(path));
}

std::unique_ptr<ByteSource> bytes_in_memory(std::string_view bytes, const std::string& name) {
  return unpack_by_name(name, std::make_unique<MemoryBytes>(bytes));
}

std::string_view without_packing(std::string_view path) {
  for (const std::string_view ending : {".gz", ".zst"}) {
    if (path.ends_with(ending)) return path.substr(0, path.size() - ending.size());
  }
  return path;
}

}  // namespace headrace::data
