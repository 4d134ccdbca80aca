#include "headrace/graph/chrome_trace.h"

#include <gtest/gtest.h>

#include <map>
#include <sstream>

#include "headrace/base/json.h"
#include "headrace/graph/exact_overlap_step.h"
#include "headrace/graph/simulator.h"
#include "tests/graph/equal_blocks.h"

namespace headrace::graph {
namespace {

TEST(ChromeTrace, HasATrackALaneAndASliceATask) {
  StepShape shape = equal_blocks(3, true);
  shape.blocks[1].num_pieces = 2;
  shape.host_workers = 2;
  TaskGraph graph = repeat_step(exact_overlap_step(shape, 1), 2);
  assign_costs(graph, ideal_table(shape, {1, 2, 3}));
  const Timeline timeline = simulate(graph);
  std::ostringstream out;
  write_chrome_trace(out, graph, timeline, "offload \"emulated\"");
  const Json trace = parse_json(out.str(), "test", "trace");
  std::map<int, std::string> tracks;
  size_t next = 0;
  for (const Json& event : trace.at("traceEvents")) {
    ASSERT_TRUE(event.at("pid").is_number_integer() && event.at("tid").is_number_integer());
    if (event.at("ph") == "M") {
      if (event.at("name") == "process_name") {
        EXPECT_EQ(event.at("args").at("name"), "offload \"emulated\"");
      }
      if (event.at("name") == "thread_name") tracks[event.at("tid")] = event.at("args").at("name");
      continue;
    }
    ASSERT_EQ(event.at("ph"), "X");
    const Task& task = graph.tasks.at(next);
    const TaskRun& run = timeline.runs[next++];
    EXPECT_EQ(event.at("cat"), name_of(task.kind));
    EXPECT_EQ(event.at("args").at("step"), task.step);
    EXPECT_EQ(event.at("args").value("piece", kWholeBlock), task.piece);
    if (task.piece != kWholeBlock) {
      EXPECT_TRUE(event.at("name").get<std::string>().ends_with("1." + std::to_string(task.piece)));
    }
    EXPECT_EQ(to_ns(event.at("ts").get<double>() / 1e6), run.start_ns);
    EXPECT_EQ(to_ns(event.at("dur").get<double>() / 1e6), run.end_ns - run.start_ns);
    EXPECT_TRUE(tracks.at(event.at("tid")).starts_with(name_of(task.lane)));
  }
  EXPECT_EQ(next, graph.tasks.size());
  const std::map<int, std::string> expected = {
      {1, "compute"}, {2, "h2d"}, {3, "d2h"}, {4, "host_update[0]"}, {5, "host_update[1]"}};
  EXPECT_EQ(tracks, expected);
}

}  // namespace
}  // namespace headrace::graph
