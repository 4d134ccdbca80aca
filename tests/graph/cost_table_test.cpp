#include "headrace/graph/cost_table.h"

#include <gtest/gtest.h>

#include "headrace/base/errors.h"

namespace headrace::graph {
namespace {

CostTable read(const std::string& text) { return cost_table_from_json(parse_json(text, "test", "table"), "table"); }

TEST(CostTable, SurvivesJson) {
  CostTable table;
  table.source = CostSource::kMeasured;
  table.of(LaneKind::kH2d) = {.seconds_per_byte = 4.1e-11, .seconds_per_task = 1.7e-5};
  table.blocks = {{.forward_s = 0.1, .recompute_s = 0.2, .backward_s = 0.3, .device_update_s = 0.4},
                  {.split_s = 0.6, .merge_s = 0.7, .release_s = 0.8, .adopt_s = 0.9}};
  table.reduce_s = 0.5;
  const std::string text = table.to_json().dump();
  const CostTable back = read(text);
  EXPECT_EQ(back.to_json().dump(), text);
  EXPECT_EQ(back.of(LaneKind::kH2d).seconds_per_task, 1.7e-5);
  EXPECT_EQ(back.blocks[0].device_update_s, 0.4);
  EXPECT_EQ(back.blocks[1].split_s, 0.6);
  EXPECT_EQ(back.blocks[1].adopt_s, 0.9);
  EXPECT_EQ(back.source, CostSource::kMeasured);
}

TEST(CostTable, PiecesShareWhatABlockCosts) {
  CostTable table;
  table.blocks = {{}, {.split_s = 6, .merge_s = 4, .release_s = 3, .adopt_s = 2}};
  table.reduce_s = 9;
  table.of(LaneKind::kH2d).seconds_per_task = 5;
  TaskGraph graph;
  for (int32_t piece = 0; piece < 3; ++piece) graph.add({.kind = TaskKind::kReduce, .block = 1, .piece = piece});
  for (int32_t piece = 0; piece < 2; ++piece) graph.add({.kind = TaskKind::kMerge, .block = 1, .piece = piece});
  graph.add({.kind = TaskKind::kReduce, .block = 1, .step = 1});
  graph.add({.kind = TaskKind::kReduce});
  graph.add({.kind = TaskKind::kRelease, .block = 1});
  graph.add({.kind = TaskKind::kAdopt, .block = 1});
  graph.add({.kind = TaskKind::kAdopt, .lane = LaneKind::kH2d, .block = 1});
  assign_costs(graph, table);
  std::vector<double> costs;
  for (const Task& task : graph.tasks) costs.push_back(task.cost_s);
  EXPECT_EQ(costs, (std::vector<double>{2, 2, 2, 2, 2, 6, 9, 3, 2, 5}));
}

TEST(CostTable, WhatIsLeftOutCostsNothing) {
  const CostTable table = read(R"({"blocks": [{"forward_s": 1}]})");
  EXPECT_EQ(table.of(LaneKind::kD2h).seconds_per_byte, 0);
  EXPECT_EQ(table.source, CostSource::kDescribed);
}

TEST(CostTable, RefusesWhatItDoesNotKnow) {
  for (const char* text :
       {"[]", "{}", R"({"blocks": []})", R"({"blocks": {}})", R"({"blocks": [{"forwards": 1}]})",
        R"({"blocks": [{"forward_s": -1}]})", R"({"blocks": [{"forward_s": "1"}]})", R"({"blocks": [1]})",
        R"({"blocks": [{}], "lanes": {"pcie": {}}})", R"({"blocks": [{}], "lanes": {"compute": {}}})",
        R"({"blocks": [{}], "source": "guessed"})", R"({"blocks": [{}], "reduce_s": null})",
        R"({"blocks": [{}], "lanes": {"h2d": {"seconds_per_byte": true}}})", R"({"blocks": [{}], "speed": 1})"}) {
    EXPECT_THROW(read(text), DataError) << text;
  }
}

TEST(CostTable, CostsTasksByBytesOrByBlock) {
  CostTable table;
  table.of(LaneKind::kH2d) = {.seconds_per_byte = 2, .seconds_per_task = 5};
  table.blocks = {{.forward_s = 1}, {.forward_s = 7, .backward_s = 8, .device_update_s = 9}};
  table.reduce_s = 3;
  TaskGraph graph;
  graph.add({.kind = TaskKind::kFetch, .lane = LaneKind::kH2d, .block = 1, .bytes = 100});
  graph.add({.kind = TaskKind::kForward, .block = 1});
  graph.add({.kind = TaskKind::kDeviceUpdate, .block = 1});
  graph.add({.kind = TaskKind::kReduce});
  assign_costs(graph, table);
  EXPECT_EQ(graph.tasks[0].cost_s, 205);
  EXPECT_EQ(graph.tasks[1].cost_s, 7);
  EXPECT_EQ(graph.tasks[2].cost_s, 9);
  EXPECT_EQ(graph.tasks[3].cost_s, 3);
  graph.tasks[1].block = 2;
  EXPECT_THROW(assign_costs(graph, table), InternalError);
}

}  // namespace
}  // namespace headrace::graph
