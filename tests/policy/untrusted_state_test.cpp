// States from strangers: whatever a checkpoint's facts and tensors hold, restoring says what is wrong or goes on, and
// nothing crashes, hangs or asks for memory without bound.
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "headrace/base/errors.h"
#include "headrace/device/emulated.h"
#include "headrace/policy/offload.h"
#include "headrace/policy/resident.h"
#include "headrace/policy/zenflow/zenflow.h"
#include "tests/policy/relay.h"

namespace headrace::policy {
namespace {

// A saved state with other facts, or with other bytes in one tensor.
class Changed final : public StateReader {
 public:
  explicit Changed(const PolicyState& saved) : saved_(saved), facts_(saved.facts()) {}
  void set_fact(const Json::json_pointer& at, const Json& value) { facts_[at] = value; }
  void set_bytes(const std::string& name, std::vector<std::byte> bytes) {
    name_ = name;
    bytes_ = std::move(bytes);
  }
  std::optional<StateTensor> find(const std::string& name) const override {
    std::optional<StateTensor> tensor = saved_.find(name);
    if (tensor && name == name_) tensor->bytes = bytes_;
    return tensor;
  }
  const Json& facts() const override { return facts_; }

 private:
  const PolicyState& saved_;
  Json facts_;
  std::string name_;
  std::vector<std::byte> bytes_;
};

class UntrustedStateTest : public ::testing::Test {
 protected:
  UntrustedStateTest() {
    at::set_num_threads(1);
    const auto saved = zenflow();
    for (int64_t i = 0; i < 7; ++i) Relay{}.step(*saved, i);
    saved->save(state_);
  }

  std::unique_ptr<Policy> zenflow() const {
    return std::make_unique<ZenFlow>(
        model_, device::make_emulated_device({}), support::random_weights(model_, 1),
        ZenFlowSettings{.optimizer = {.clip = 0.5}, .topk_ratio = 0.2, .schedule = {.update_interval = 3}});
  }
  std::unique_ptr<Policy> offload() const {
    return std::make_unique<Offload>(model_, device::make_emulated_device({}), support::random_weights(model_, 1),
                                     OffloadSettings{});
  }

  // Refused as what it is, or taken; then steps go on, or say that a value is not finite.
  static void expect_no_harm(Policy& policy, const StateReader& state, const std::string& what) {
    SCOPED_TRACE(what);
    try {
      policy.restore(state, {.accepts_changes = true});
      for (int64_t i = 7; i < 13; ++i) Relay{}.step(policy, i);
      policy.finish_training();
    } catch (const DataError&) {
    } catch (const ConfigError&) {
    } catch (const RunError&) {
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }

  static std::vector<Json::json_pointer> leaves(const Json& facts) {
    std::vector<Json::json_pointer> found;
    const Json flat = facts.flatten();
    for (const auto& [path, value] : flat.items()) found.emplace_back(path);
    return found;
  }

  const model::Model model_ = support::tiny_model();
  PolicyState state_;
};

TEST_F(UntrustedStateTest, AnyFactMayBeAnything) {
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    0,
                                    1,
                                    int64_t{1} << 40,
                                    std::numeric_limits<int64_t>::max(),
                                    1e300,
                                    "seven",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({1, 2, 3})};
  std::vector<Json::json_pointer> paths = leaves(state_.facts());
  // Blocks are alike: the first and the last stand for all.
  std::erase_if(paths, [](const auto& path) {
    const std::string text = path.to_string();
    for (const char* middle : {"/1/", "/2/", "/3/"}) {
      if (text.find(middle) != std::string::npos) return true;
    }
    return false;
  });
  ASSERT_GT(paths.size(), 10u);
  for (const Json::json_pointer& path : paths) {
    for (const Json& value : values) {
      Changed changed(state_);
      changed.set_fact(path, value);
      expect_no_harm(*zenflow(), changed, path.to_string() + " = " + value.dump());
    }
  }
}

TEST_F(UntrustedStateTest, AnyTensorMayHoldAnything) {
  const std::string of_matrix = "model.layers.1.mlp.down_proj.weight";
  for (const std::string kind :
       {"updates/", "important/", "deferred/", "score/", "window/", "seen/", "master/", "v/"}) {
    const std::optional<StateTensor> tensor = state_.find(kind + of_matrix);
    if (!tensor) continue;
    for (const unsigned char fill : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      Changed changed(state_);
      changed.set_bytes(kind + of_matrix, std::vector<std::byte>(tensor->bytes.size(), std::byte{fill}));
      expect_no_harm(*zenflow(), changed, kind + " all " + std::to_string(fill));
      expect_no_harm(*offload(), changed, kind + " all " + std::to_string(fill) + ", offload");
    }
  }
}

}  // namespace
}  // namespace headrace::policy
