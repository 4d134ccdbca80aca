// Any bytes as a checkpoint's manifest. Once as they are, and once with the hash that seals a manifest put behind them,
// so that mutations need not guess it.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "headrace/base/errors.h"
#include "headrace/store/manifest.h"
#include "headrace/store/names.h"
#include "tests/fuzz/expect.h"

namespace {

using namespace headrace;

void try_manifest(std::string_view text) {
  store::Manifest manifest;
  try {
    manifest = store::parse_manifest(text, "fuzz");
  } catch (const DataError&) {
    return;
  }
  HEADRACE_FUZZ_EXPECT(manifest.step >= 0 && manifest.total_bytes() >= 0);
  std::set<std::string> names;
  for (const store::FileEntry& file : manifest.files) {
    HEADRACE_FUZZ_EXPECT(file.bytes >= 0 && file.xxh3_128.size() == 32);
    HEADRACE_FUZZ_EXPECT(!file.name.empty() && file.name[0] != '.' && file.name.find('/') == std::string::npos);
    HEADRACE_FUZZ_EXPECT(names.insert(file.name).second);
  }
  HEADRACE_FUZZ_EXPECT(names.contains(std::string(store::kStateName)));
  HEADRACE_FUZZ_EXPECT(store::parse_manifest(store::manifest_text(manifest), "again") == manifest);
}

// Names in a folder decide what is removed: only those made by us may be taken for ours.
void try_name(std::string_view name) {
  if (const auto step = store::step_in(name)) HEADRACE_FUZZ_EXPECT(store::step_name(*step) == name);
  if (const auto hidden = store::hidden_in(name)) {
    HEADRACE_FUZZ_EXPECT(name.starts_with("." + store::step_name(hidden->step) + "."));
    HEADRACE_FUZZ_EXPECT(name.find('/') == std::string_view::npos);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_manifest(text);
  try_manifest(store::sealed(text));
  try_name(text.substr(0, text.find('\n')));
  return 0;
}
