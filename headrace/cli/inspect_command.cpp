#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/base/json.h"
#include "headrace/base/units.h"
#include "headrace/cli/command.h"
#include "headrace/cli/exit_code.h"
#include "headrace/store/list.h"
#include "headrace/store/names.h"
#include "headrace/store/verify.h"

namespace headrace::cli {
namespace {

namespace fs = std::filesystem;

struct InspectFlags {
  std::string path;
  bool verify = false;
};

struct Row {
  store::CheckpointInfo info;
  std::vector<std::string> faults;  // without verify: what the manifest and sizes tell

  Json to_json(bool verified) const {
    return {{"step", info.step},
            {"folder", info.folder.native()},
            {"created", info.manifest.created},
            {"files", info.manifest.files.size()},
            {"bytes", info.manifest.total_bytes()},
            {"status", !faults.empty() ? "damaged"
                       : verified      ? "verified"
                                       : "complete"},
            {"faults", faults}};
  }
};

// Of a run folder all checkpoints, newest first; else the one that is named.
std::vector<store::CheckpointInfo> find(const std::string& path) {
  fs::path folder = path;
  if (!folder.has_filename()) folder = folder.parent_path();
  if (!fs::is_directory(folder)) throw ConfigError("cli.inspect", folder.native() + " is no folder.");
  const auto step = store::step_in(folder.filename().native());
  if (step) return {store::read_info(folder, *step)};
  return store::list_checkpoints(folder);
}

void print(const Row& row, bool verified) {
  const Json json = row.to_json(verified);
  std::printf("step %lld  %s  %s  %s  %s\n", static_cast<long long>(row.info.step),
              format_bytes(row.info.manifest.total_bytes()).c_str(), row.info.manifest.created.c_str(),
              json["status"].get<std::string>().c_str(), row.info.folder.c_str());
  for (const std::string& fault : row.faults) std::printf("  %s\n", fault.c_str());
}

int run(const InspectFlags& flags, bool json) {
  std::vector<Row> rows;
  bool is_whole = true;
  for (store::CheckpointInfo& info : find(flags.path)) {
    Row row{std::move(info), {}};
    if (flags.verify) {
      row.faults = store::verify(row.info);
    } else if (!row.info.is_complete()) {
      row.faults.push_back(row.info.fault);
    }
    is_whole = is_whole && row.faults.empty();
    if (!json) print(row, flags.verify);
    rows.push_back(std::move(row));
  }
  if (json) {
    Json list = Json::array();
    for (const Row& row : rows) list.push_back(row.to_json(flags.verify));
    const Json result = {{"checkpoints", list}, {"latest", store::read_latest(flags.path)}};
    std::printf("%s\n", result.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  } else if (rows.empty()) {
    std::printf("no checkpoints in %s\n", flags.path.c_str());
  }
  return is_whole ? kDone : kFailed;
}

}  // namespace

Run add_inspect(CLI::App& app) {
  const auto flags = std::make_shared<InspectFlags>();
  app.add_option("path", flags->path, "folder of a run or of a checkpoint")->required()->type_name("DIR");
  app.add_flag("--verify", flags->verify, "read every byte and compare it with what was written");
  return [flags](bool json) { return run(*flags, json); };
}

}  // namespace headrace::cli
