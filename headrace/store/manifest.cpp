#include "headrace/store/manifest.h"

#include <set>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/safetensors/header_reader.h"
#include "headrace/store/digest.h"
#include "headrace/store/names.h"

namespace headrace::store {
namespace {

using safetensors::in_quotes;

constexpr std::string_view kPlace = "store.manifest";
constexpr std::string_view kSealBegin = "\n  \"manifest_xxh3_128\": \"", kSealEnd = "\"\n}\n";
constexpr size_t kHashDigits = 32, kMaxNameLength = 128;

// Everything that can be wrong, with the place where it is.
class Checker {
 public:
  explicit Checker(std::string_view source) : source_(source) {}

  [[noreturn]] void refuse(const std::string& fact) const { throw DataError(kPlace, source_ + ": " + fact); }

  const Json& member(const Json& object, const char* key) const {
    const auto found = object.find(key);
    if (found == object.end()) refuse("lacks \"" + std::string(key) + "\".");
    return *found;
  }

  int64_t count(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!is_int(value) || value.get<int64_t>() < 0) {
      refuse("\"" + std::string(key) + "\" is " + in_quotes(value.dump(-1, ' ', true)) + ", not a count.");
    }
    return value.get<int64_t>();
  }

  std::string word(const Json& object, const char* key) const {
    const Json& value = member(object, key);
    if (!value.is_string()) refuse("\"" + std::string(key) + "\" is no text.");
    return value.get<std::string>();
  }

 private:
  std::string source_;
};

bool is_file_name(std::string_view name) {
  constexpr std::string_view allowed = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-";
  return !name.empty() && name.size() <= kMaxNameLength && name.front() != '.' && name != kManifestName &&
         name.find_first_not_of(allowed) == std::string_view::npos;
}

bool is_hash(std::string_view text) {
  return text.size() == kHashDigits && text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

FileEntry read_entry(const Json& json, const Checker& checker) {
  if (!json.is_object()) checker.refuse("an entry of \"files\" is no object.");
  FileEntry entry{checker.word(json, "name"), checker.count(json, "bytes"), checker.word(json, "xxh3_128")};
  if (!is_file_name(entry.name)) {
    checker.refuse("names the file " + in_quotes(entry.name) +
                   "; only letters, digits, '_', '-' and '.' may be in a name, and no dot in front.");
  }
  if (!is_hash(entry.xxh3_128)) {
    checker.refuse("gives " + in_quotes(entry.xxh3_128) + " as the hash of " + entry.name +
                   "; it must be 32 hexadecimal digits.");
  }
  return entry;
}

std::vector<FileEntry> read_entries(const Json& json, const Checker& checker) {
  if (!json.is_array()) checker.refuse("\"files\" is no list.");
  std::vector<FileEntry> files;
  std::set<std::string> names;
  int64_t total = 0;
  for (const Json& item : json) {
    files.push_back(read_entry(item, checker));
    if (!names.insert(files.back().name).second) checker.refuse("names the file " + files.back().name + " twice.");
    if (__builtin_add_overflow(total, files.back().bytes, &total)) {
      checker.refuse("names files of more than 2^63 bytes together.");
    }
  }
  if (!names.contains(std::string(kStateName))) checker.refuse("does not name " + std::string(kStateName) + ".");
  return files;
}

void check_seal(std::string_view text, const Checker& checker) {
  const size_t length = kSealBegin.size() + kHashDigits + kSealEnd.size();
  const std::string_view body = text.substr(0, text.size() - std::min(length, text.size()));
  const std::string_view seal = text.substr(body.size());
  if (seal.size() != length || !seal.starts_with(kSealBegin) || !seal.ends_with(kSealEnd)) {
    checker.refuse("does not end with its own hash (" + std::to_string(text.size()) + " bytes). It is cut short.");
  }
  const std::string said(seal.substr(kSealBegin.size(), kHashDigits)), is = digest_of(body);
  if (said != is) checker.refuse("its own hash says " + in_quotes(said) + ", its contents give " + is + ".");
}

}  // namespace

int64_t Manifest::total_bytes() const {
  int64_t total = 0;
  for (const FileEntry& file : files) total += file.bytes;
  return total;
}

std::string sealed(std::string_view body) {
  return std::string(body) + std::string(kSealBegin) + digest_of(body) + std::string(kSealEnd);
}

std::string manifest_text(const Manifest& manifest) {
  std::string body = "{\n  \"format\": " + std::to_string(kManifestFormat) +
                     ",\n  \"step\": " + std::to_string(manifest.step) +
                     ",\n  \"created\": " + Json(manifest.created).dump() + ",\n  \"files\": [";
  const char* separator = "\n    ";
  for (const FileEntry& file : manifest.files) {
    const OrderedJson entry = {{"name", file.name}, {"bytes", file.bytes}, {"xxh3_128", file.xxh3_128}};
    body += separator + entry.dump();
    separator = ",\n    ";
  }
  std::string text = sealed(body + "\n  ],");
  if (static_cast<int64_t>(text.size()) <= kMaxManifestBytes) return text;
  throw ConfigError(kPlace, "a checkpoint of " + std::to_string(manifest.files.size()) + " files needs a manifest of " +
                                std::to_string(text.size()) + " bytes; at most " + std::to_string(kMaxManifestBytes) +
                                " are allowed. Choose larger shards.");
}

Manifest parse_manifest(std::string_view text, std::string_view source) {
  const Checker checker(source);
  if (static_cast<int64_t>(text.size()) > kMaxManifestBytes) {
    checker.refuse("has " + std::to_string(text.size()) + " bytes; at most " + std::to_string(kMaxManifestBytes) +
                   " are allowed.");
  }
  check_seal(text, checker);
  const Json json = parse_json(text, kPlace, source);
  if (!json.is_object()) checker.refuse("is no JSON object.");
  const int64_t format = checker.count(json, "format");
  if (format != kManifestFormat) {
    checker.refuse("has format " + std::to_string(format) + "; this version reads format " +
                   std::to_string(kManifestFormat) + ". Use the version of Headrace that wrote it.");
  }
  Manifest manifest;
  manifest.step = checker.count(json, "step");
  manifest.created = checker.word(json, "created");
  manifest.files = read_entries(checker.member(json, "files"), checker);
  return manifest;
}

}  // namespace headrace::store
