#include "headrace/tensor/arena_scope.h"

#include <gtest/gtest.h>

#include <optional>
#include <thread>

#include "headrace/base/errors.h"
#include "headrace/tensor/torch.h"

namespace headrace::tensor {
namespace {

struct Arenas {
  std::shared_ptr<memory::Budget> budget = std::make_shared<memory::Budget>("device", 1 << 20, "--device-budget");
  std::shared_ptr<memory::Arena> arena = std::make_shared<memory::Arena>(budget, 1 << 20);
};

TEST(ArenaScope, TensorsInsideAreChargedAndThoseOutsideAreNot) {
  const Arenas to;
  const at::Tensor before = at::ones({1000});
  at::Tensor inside;
  {
    const ArenaScope scope(to.arena, memory::Kind::kActivation);
    inside = before.clone();
    EXPECT_EQ(to.budget->in_use(), 4032);
    std::jthread([&] { EXPECT_EQ(at::ones({1000}).numel(), 1000); }).join();  // another thread has its own
    EXPECT_EQ(to.budget->peak(), 4032);
    const ArenaScope nested(nullptr, memory::Kind::kWorkspace);
    EXPECT_EQ(at::ones({1000}).numel(), 1000);
    EXPECT_EQ(to.budget->in_use(), 4032);
  }
  const at::Tensor after = at::ones({1000});
  EXPECT_EQ(to.budget->in_use(), 4032);
  EXPECT_TRUE(at::equal(inside, after));
  inside.reset();
  EXPECT_EQ(to.budget->in_use(), 0);
}

TEST(ArenaScope, ATensorOutlivesItsArenasOwner) {
  std::optional<Arenas> to(std::in_place);
  at::Tensor kept;
  {
    const ArenaScope scope(to->arena, memory::Kind::kActivation);
    kept = at::full({100}, 3.0);
  }
  to.reset();
  EXPECT_EQ(kept.sum().item<float>(), 300);
}

TEST(ArenaScope, ARefusalNamesTheKindAndLeavesThingsAsTheyWere) {
  const Arenas to;
  const ArenaScope scope(to.arena, memory::Kind::kWorkspace);
  const at::Tensor half = at::zeros({1 << 17});  // half a MiB
  EXPECT_THROW(at::zeros({1 << 18}), CapacityError);
  EXPECT_EQ(to.budget->in_use(), 1 << 19);
  EXPECT_EQ(half.count_nonzero().item<int64_t>(), 0);
}

}  // namespace
}  // namespace headrace::tensor
