#include "headrace/os/affinity.h"

#include <gtest/gtest.h>

#include <thread>

namespace headrace::os {
namespace {

using List = std::vector<int>;

// What a thread may run on after `pin`; a thread of its own, so that the test's stays free.
template <class Pin>
List after(Pin&& pin) {
  List cores;
  std::jthread([&] {
    pin();
    cores = allowed_cores();
  }).join();
  return cores;
}

TEST(Affinity, HoldsTheThreadThatIsPinned) {
  const List all = allowed_cores();
  ASSERT_FALSE(all.empty());
  const List first(all.begin(), all.begin() + static_cast<std::ptrdiff_t>((all.size() + 1) / 2));
  EXPECT_EQ(after([&] { pin_this_thread(first); }), first);
  for (size_t nth = 0; nth < 2 * all.size(); ++nth) {
    EXPECT_EQ(after([&] { pin_this_thread_to_one(all, static_cast<int>(nth)); }), (List{all[nth % all.size()]}));
  }
}

TEST(Affinity, CoresThatDoNotExistLeaveTheThreadFree) {
  const List all = allowed_cores();
  EXPECT_EQ(after([] { pin_this_thread({}); }), all);
  EXPECT_EQ(after([] { pin_this_thread({-1, 1 << 20}); }), all);
  EXPECT_EQ(after([] { pin_this_thread_to_one({}, 3); }), all);
}

}  // namespace
}  // namespace headrace::os
