#include "headrace/graph/cost_table.h"

#include <cmath>
#include <string>
#include <utility>

#include "headrace/base/errors.h"

namespace headrace::graph {
namespace {

constexpr std::string_view kPlace = "graph.cost_table";

// Fields of a JSON object, each a number of seconds.
using Seconds = std::vector<std::pair<std::string_view, double*>>;

Seconds fields_of(LaneCost& cost) {
  return {{"seconds_per_byte", &cost.seconds_per_byte}, {"seconds_per_task", &cost.seconds_per_task}};
}

Seconds fields_of(BlockCost& cost) {
  return {{"forward_s", &cost.forward_s},   {"recompute_s", &cost.recompute_s},
          {"backward_s", &cost.backward_s}, {"device_update_s", &cost.device_update_s},
          {"split_s", &cost.split_s},       {"merge_s", &cost.merge_s},
          {"release_s", &cost.release_s},   {"adopt_s", &cost.adopt_s}};
}

template <typename Cost>
OrderedJson json_of(Cost cost) {
  OrderedJson json;
  for (const auto& [key, value] : fields_of(cost)) json[std::string(key)] = *value;
  return json;
}

// Reads one table; holds what every error says first.
class Reader {
 public:
  explicit Reader(std::string_view source) : source_(source) {}

  CostTable read(const Json& json) const {
    require(json.is_object(), "", "an object");
    CostTable table;
    for (const auto& [key, value] : json.items()) {
      if (key == "source") {
        table.source = source_kind(value);
      } else if (key == "lanes") {
        read_lanes(value, table);
      } else if (key == "blocks") {
        read_blocks(value, table);
      } else if (key == "reduce_s") {
        table.reduce_s = seconds(value, key);
      } else {
        fail("\"" + key + "\" is not a key of a cost table.");
      }
    }
    require(!table.blocks.empty(), "blocks", "a list of at least one block");
    return table;
  }

 private:
  [[noreturn]] void fail(const std::string& text) const { throw DataError(kPlace, source_ + ": " + text); }
  void require(bool is_right, const std::string& key, const std::string& what) const {
    if (!is_right) fail((key.empty() ? "the table" : "\"" + key + "\"") + " must be " + what + ".");
  }

  double seconds(const Json& value, const std::string& key) const {
    const double number = value.is_number() ? value.get<double>() : -1;
    require(std::isfinite(number) && number >= 0, key, "a finite number of seconds, 0 or more");
    return number;
  }

  CostSource source_kind(const Json& value) const {
    require(value == "described" || value == "measured", "source", "\"described\" or \"measured\"");
    return value == "measured" ? CostSource::kMeasured : CostSource::kDescribed;
  }

  void read_fields(const Json& json, const std::string& key, const Seconds& fields) const {
    require(json.is_object(), key, "an object");
    for (const auto& [name, value] : json.items()) {
      double* target = nullptr;
      for (const auto& [field, address] : fields) {
        if (field == name) target = address;
      }
      if (target == nullptr) fail("\"" + key + "." + name + "\" is not a key of a cost table.");
      *target = seconds(value, key + "." + name);
    }
  }

  void read_lanes(const Json& json, CostTable& table) const {
    require(json.is_object(), "lanes", "an object");
    for (const auto& [name, value] : json.items()) {
      const auto lane = lane_named(name);
      if (!lane || *lane == LaneKind::kCompute) fail("\"" + name + "\" is not a lane with a cost of its own.");
      read_fields(value, "lanes." + name, fields_of(table.of(*lane)));
    }
  }

  void read_blocks(const Json& json, CostTable& table) const {
    require(json.is_array(), "blocks", "a list");
    for (const Json& value : json) {
      BlockCost& cost = table.blocks.emplace_back();
      read_fields(value, "blocks." + std::to_string(table.blocks.size() - 1), fields_of(cost));
    }
  }

  std::string source_;
};

// All pieces together.
double compute_cost(const Task& task, const CostTable& table) {
  if (task.kind == TaskKind::kReduce && task.block == kWholeModel) return table.reduce_s;
  if (task.block < 0 || static_cast<size_t>(task.block) >= table.blocks.size()) {
    throw InternalError(
        kPlace, name_of(task) + " has no cost in a table of " + std::to_string(table.blocks.size()) + " blocks.");
  }
  const auto field = field_of(task.kind);
  if (field == nullptr) throw InternalError(kPlace, name_of(task) + " has no cost on the compute lane.");
  return table.blocks[static_cast<size_t>(task.block)].*field;
}

}  // namespace

double BlockCost::*field_of(TaskKind kind) {
  switch (kind) {
    case TaskKind::kForward:
      return &BlockCost::forward_s;
    case TaskKind::kRecompute:
      return &BlockCost::recompute_s;
    case TaskKind::kBackward:
      return &BlockCost::backward_s;
    case TaskKind::kDeviceUpdate:
      return &BlockCost::device_update_s;
    case TaskKind::kReduce:
      return &BlockCost::split_s;
    case TaskKind::kMerge:
      return &BlockCost::merge_s;
    case TaskKind::kRelease:
      return &BlockCost::release_s;
    case TaskKind::kAdopt:
      return &BlockCost::adopt_s;
    default:
      return nullptr;
  }
}

OrderedJson CostTable::to_json() const {
  OrderedJson json;
  json["source"] = source == CostSource::kMeasured ? "measured" : "described";
  for (size_t i = 0; i < kNumLaneKinds; ++i) {
    const auto lane = static_cast<LaneKind>(i);
    if (lane != LaneKind::kCompute) json["lanes"][std::string(name_of(lane))] = json_of(lanes[i]);
  }
  json["blocks"] = OrderedJson::array();
  for (const BlockCost& block : blocks) json["blocks"].push_back(json_of(block));
  json["reduce_s"] = reduce_s;
  return json;
}

CostTable cost_table_from_json(const Json& json, std::string_view source) { return Reader(source).read(json); }

void assign_costs(TaskGraph& graph, const CostTable& table) {
  const std::vector<int32_t> pieces = num_pieces_of(graph);
  for (size_t i = 0; i < graph.tasks.size(); ++i) {
    Task& task = graph.tasks[i];
    const LaneCost& lane = table.of(task.lane);
    task.cost_s = task.lane == LaneKind::kCompute
                      ? compute_cost(task, table) / pieces[i]
                      : static_cast<double>(task.bytes) * lane.seconds_per_byte + lane.seconds_per_task;
  }
}

}  // namespace headrace::graph
