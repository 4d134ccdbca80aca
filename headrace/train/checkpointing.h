// When a run is saved, and how: its state at the end of a step, copied and written by a thread of its own while
// training goes on; a step waits before it changes a block that is not copied yet. The trainer thread calls;
// store/background_writer.h has the thread.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "headrace/base/json.h"
#include "headrace/config/train_config.h"
#include "headrace/policy/policy.h"
#include "headrace/policy/state.h"
#include "headrace/store/background_writer.h"
#include "headrace/store/run_lock.h"

namespace headrace::train {

inline constexpr int64_t kStateFormat = 1;  // of state.json

class Checkpointing {
 public:
  struct Settings {
    config::SaveEvery every;
    int64_t keep_last = 2;
    int64_t host_budget = 0;        // [bytes] 0: what the machine has
    int64_t saved_bytes = 0;        // of a copy of the policy's state
    std::vector<int> writer_cores;  // that the writer's thread is bound to; empty: those of the trainer
    std::function<void(const std::string&)> say, note;  // to people; to the log alone
  };

  // The lock must outlive this, and the policies it saves too.
  Checkpointing(const store::RunLock& lock, Settings settings);

  // Whether the run is to be saved after this step, by steps or by time since the last save.
  bool is_due(int64_t step) const;

  // Saves the policy's state and `state`, to which it adds the policy's facts under "policy". Waits for the write
  // before, and for the policy's lanes; where memory has no room for a copy it writes itself, and says so once. Errors
  // of writing are kept for error(); throws what the policy throws.
  void save(policy::Policy& policy, int64_t step, Json state);
  // After each step. Tells of what was written meanwhile, and makes room for the first copy. Does not wait.
  void poll();
  // Waits for the writer.
  void finish();

  // What the first write that failed failed with; null while none did. Nothing is written after it.
  std::exception_ptr error() const { return error_; }
  int64_t last_step() const { return last_step_; }  // of the last save; -1 before

 private:
  bool has_room() const;
  void make_copy();
  void prepare_copy();
  void write_in_background(policy::Policy& policy, int64_t step, Json state);
  void write_here(policy::Policy& policy, int64_t step, Json state);
  void tell(const std::vector<store::FinishedWrite>& finished) const;
  template <class Body>
  void keep_error(const Body& body);

  const store::RunLock& lock_;
  const Settings settings_;
  std::shared_ptr<policy::PolicyState> copy_;     // used again for each save; null before the first
  std::shared_ptr<const policy::CopyGate> gate_;  // of the copy that was made last; null before
  bool writes_here_ = false;
  int64_t last_step_ = -1;
  double last_save_s_;  // by the steady clock
  std::exception_ptr error_;
  store::BackgroundWriter writer_;  // last: it refers to the copy
};

}  // namespace headrace::train
