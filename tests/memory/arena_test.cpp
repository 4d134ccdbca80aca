#include "headrace/memory/arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "headrace/base/errors.h"

namespace headrace::memory {
namespace {

constexpr int64_t kMiB = 1 << 20;

std::shared_ptr<Budget> budget_of(int64_t limit) {
  return std::make_shared<Budget>("device", limit, "--device-budget");
}

TEST(Arena, GivesTheLowestPlaceThatFits) {
  Arena arena(budget_of(0), kMiB);
  std::byte* a = arena.allocate(Kind::kActivation, 1000);
  std::byte* b = arena.allocate(Kind::kActivation, 1);
  std::byte* c = arena.allocate(Kind::kActivation, 5000);
  EXPECT_EQ(b - a, 1024);  // a multiple of the alignment
  EXPECT_EQ(c - b, 64);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(a) % Arena::kAlignment, 0U);
  arena.free(a);
  arena.free(b);
  EXPECT_EQ(arena.allocate(Kind::kWorkspace, 1088), a);  // both places joined
  EXPECT_EQ(arena.extent(), c - a + 5056);
  EXPECT_EQ(arena.num_in_use(), 2);
  EXPECT_EQ(arena.allocate(Kind::kWorkspace, 0), nullptr);
}

TEST(Arena, ChargesItsBudgetByKind) {
  const auto budget = budget_of(4096);
  Arena arena(budget, kMiB);
  std::byte* a = arena.allocate(Kind::kActivation, 3000);
  EXPECT_EQ(budget->in_use(), 3008);
  try {
    arena.allocate(Kind::kWorkspace, 2048);
    FAIL() << "4096 bytes hold 5056";
  } catch (const CapacityError& error) {
    for (const char* part : {"workspace", "device", "activation 2.94 KiB", "4.00 KiB", "--device-budget"}) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << part << " in " << error.what();
    }
  }
  arena.free(a);
  EXPECT_EQ(budget->in_use(), 0);
  EXPECT_EQ(budget->peak(), 3008);
  EXPECT_EQ(budget->peak(Kind::kActivation), 3008);
  EXPECT_EQ(budget->peak(Kind::kWorkspace), 0);
  EXPECT_EQ(budget->system_allocations(), 1);
}

TEST(Arena, RefusesWhatNoFreeRunHolds) {
  Arena arena(budget_of(0), 4096);
  std::byte* a = arena.allocate(Kind::kActivation, 2048);
  arena.allocate(Kind::kActivation, 1024);
  arena.free(a);
  EXPECT_THROW(arena.allocate(Kind::kActivation, 2049), CapacityError);  // 3072 are free, in two runs
  EXPECT_EQ(arena.allocate(Kind::kActivation, 2048), a);
}

TEST(Arena, NoticesAFreeOfWhatIsNotInUse) {
  Arena arena(budget_of(0), kMiB);
  std::byte* a = arena.allocate(Kind::kActivation, 100);
  EXPECT_THROW(arena.free(a + 64), InternalError);
  arena.free(a);
  EXPECT_THROW(arena.free(a), InternalError);
  arena.free(nullptr);
}

// Random life: what is in use never overlaps, and when all is freed one run is left.
TEST(Arena, KeepsItsPlacesApartOverARandomLife) {
  struct Held {
    std::byte* at;
    size_t bytes;
    unsigned char mark;
  };
  Arena arena(budget_of(0), 8 * kMiB);
  std::mt19937 random(7);
  std::vector<Held> held;
  const auto release = [&](size_t index) {
    const Held each = held[index];
    held[index] = held.back();
    held.pop_back();
    for (size_t i = 0; i < each.bytes; ++i) ASSERT_EQ(each.at[i], std::byte{each.mark});
    arena.free(each.at);
  };
  for (int i = 0; i < 5000; ++i) {
    if (held.size() > 40 || (!held.empty() && random() % 2 == 0)) {
      release(random() % held.size());
    } else {
      const size_t bytes = 1 + random() % 50000;
      held.push_back(
          {arena.allocate(Kind::kWorkspace, static_cast<int64_t>(bytes)), bytes, static_cast<unsigned char>(random())});
      std::memset(held.back().at, held.back().mark, bytes);
    }
  }
  while (!held.empty()) release(0);
  EXPECT_NE(arena.allocate(Kind::kWorkspace, 8 * kMiB), nullptr);
}

TEST(Arena, ServesSeveralThreads) {
  const auto budget = budget_of(0);
  Arena arena(budget, 64 * kMiB);
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&arena, t] {
      for (int i = 1; i < 500; ++i) {
        std::byte* at = arena.allocate(Kind::kActivation, i * 64);
        std::memset(at, t, static_cast<size_t>(i) * 64);
        arena.free(at);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(arena.num_in_use(), 0);
  EXPECT_EQ(budget->in_use(), 0);
}

TEST(Budget, RefusesGivingBackMoreThanWasTaken) {
  Budget budget("host", 100, "--host-budget");
  budget.take(Kind::kMaster, 60);
  EXPECT_THROW(budget.give(Kind::kM, 1), InternalError);
  EXPECT_THROW(budget.give(Kind::kMaster, 61), InternalError);
  EXPECT_THROW(budget.take(Kind::kMaster, 41), CapacityError);
  budget.take(Kind::kM, 40);
  budget.give(Kind::kMaster, 60);
  EXPECT_EQ(budget.to_json(), (Json{{"limit", 100}, {"peak", 100}, {"by_kind", {{"master", 60}, {"m", 40}}}}));
  budget.reset_peaks();
  EXPECT_EQ(budget.peak(), 40);
  EXPECT_EQ(budget.peak(Kind::kMaster), 0);
}

}  // namespace
}  // namespace headrace::memory
