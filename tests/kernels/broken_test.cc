// SPDX-License-Identifier: MIT
// One change to a kernel that works makes a kernel that hangs, races or faults on a GPU. The
// interpreter must refuse it in whatever order warps run, with a message that names the place.
#include "compiler/interp/kernel_interpreter.h"
#include "gmock/gmock.h"
#include "tests/kernels/hand_written.h"

namespace hackc::kernels {
namespace {

using testing::HasSubstr;

struct Change {
  std::string from, to;
};

// What the interpreter says of kernel `name` with `changes`, in each of several orders.
std::vector<std::string> Messages(const std::string& name, const std::vector<Change>& changes) {
  std::string text = ReadHandWritten(name).text;
  for (const Change& change : changes) {
    const size_t at = text.find(change.from);
    if (at == std::string::npos) throw std::runtime_error(name + " lacks: " + change.from);
    text.replace(at, change.from.size(), change.to);
  }
  const Case c = ParseCase(name, text);
  std::vector<std::string> messages;
  for (uint32_t seed = 1; seed <= 5; ++seed) {
    interp::FunctionRun run = Inputs(c, 1);
    messages.emplace_back(interp::RunKernel(c.kernel, run, {.schedule_seed = seed}).message());
  }
  return messages;
}

testing::Matcher<std::vector<std::string>> AllSay(const std::string& text) {
  return testing::Each(HasSubstr(text));
}
// In each order one of the ways in which such a kernel fails: it depends on who comes first.
testing::Matcher<std::vector<std::string>> AllFail() {
  return testing::Each(testing::AnyOf(
      HasSubstr("while an asynchronous copy into it is in flight"), HasSubstr("race: "),
      HasSubstr("before it was written"), HasSubstr("deadlock: "),
      HasSubstr("while a wgmma may still write it"), HasSubstr(" arrivals in phase ")));
}

constexpr char kCopy[] = "copy_bf16_swizzle128";

TEST(Broken, ExpectedBytesThatNeverComeAreADeadlock) {
  EXPECT_THAT(
      Messages(kCopy, {{"bytes = 8192", "bytes = 8208"}}),
      AllSay("kernel copy_bf16_swizzle128: deadlock: no warp can go on; warps 0 to 3 at "
             "mbarrier_wait @full: @full[0] is in phase 0, a phase of parity 0 is waited for; "
             "@full[0] in phase 0: 1 of 1 arrivals, 16 bytes to come"));
  EXPECT_THAT(Messages(kCopy, {{"bytes = 8192", "bytes = 4096"}}),
              AllSay("1 of 1 arrivals, -4096 bytes to come"));
}

TEST(Broken, AMissingArriveIsADeadlock) {
  EXPECT_THAT(Messages(kCopy, {{"mbarrier_arrive {barrier = @full, index = 0, bytes = 8192}", ""}}),
              AllSay("@full[0] in phase 0: 0 of 1 arrivals, -8192 bytes to come"));
}

TEST(Broken, AProducerWithNothingInItIsADeadlock) {
  EXPECT_THAT(
      Messages("copy_ring2", {{"for %p: free serial in t {", "for %p: free serial in 0 {"},
                              {"for %q: free serial in u {", "for %q: free serial in 0 {"}}),
      AllSay("warps 0 to 3 at role first 0 / for %c / mbarrier_wait @full: @full[0] is in "
             "phase 0, a phase of parity 0 is waited for; @empty[0] in phase 0: 0 of 128 "
             "arrivals"));
}

TEST(Broken, AWrongParityReadsTooEarlyOrWaitsForEver) {
  EXPECT_THAT(Messages(kCopy, {{"parity = 0", "parity = 1"}}), AllFail());
}

TEST(Broken, AMissingWaitReadsTooEarly) {
  EXPECT_THAT(Messages(kCopy, {{"mbarrier_wait {barrier = @full, index = 0, parity = 0}", ""}}),
              AllFail());
}

TEST(Broken, ParityThatDoesNotGoOnInTheSecondLoop) {
  EXPECT_THAT(Messages("copy_ring3", {{"parity = ((%d.at // 3) % 2)", "parity = ((%d // 3) % 2)"}}),
              AllFail());
}

TEST(Broken, ASlotFilledAgainBeforeItIsEmpty) {
  EXPECT_THAT(Messages("copy_ring2", {{"mbarrier_wait {barrier = @empty, index = %p.slot, parity = "
                                       "(((%p.at // 2) + 1) % 2)}",
                                       ""}}),
              AllFail());
}

TEST(Broken, OneThreadSaysEmptyWhileOthersStillRead) {
  std::vector<Change> changes = {{"count = 128", "count = 1"}};
  for (const char* axis : {"c", "d"}) {
    const std::string arrive =
        std::string("mbarrier_arrive {barrier = @empty, index = %") + axis + ".slot, bytes = 0}";
    changes.push_back({arrive, "if (thread.x == 0) { " + arrive + " }"});
  }
  EXPECT_THAT(Messages("copy_ring2", changes),
              AllSay("race: write of a read element by a bulk load"));
  EXPECT_THAT(Messages("copy_ring2", {{"count = 128", "count = 1"}}), AllFail());
}

TEST(Broken, ASlotGivenBackBeforeTheProductHasReadItIsARace) {
  EXPECT_THAT(Messages("product_bf16", {{"      wgmma_wait {pending = 0}\n", ""},
                                        {"index = %slot2, bytes = 0}\n      }\n",
                                         "index = %slot2, bytes = 0}\n      }\n      wgmma_wait "
                                         "{pending = 0}\n"}}),
              AllSay("race: write of a read element by a bulk load of block 0 after wgmma of "
                     "warpgroup"));
}

TEST(Broken, MissingProxyFence) {
  EXPECT_THAT(
      Messages("copy_rank3", {{"  proxy_fence\n", ""}}),
      AllSay("bulk_store @y_map: @out[0, 0]: a bulk store of block 0 after a write by thread 0 "
             "of block 0 with no proxy_fence between"));
}

TEST(Broken, MissingBarrierBeforeABulkStore) {
  EXPECT_THAT(Messages("copy_rank3", {{"  proxy_fence\n  barrier\n", "  proxy_fence\n"}}),
              AllFail());
}

TEST(Broken, ABulkStoreThatIsNotWaitedFor) {
  EXPECT_THAT(Messages("copy_rank3", {{"    bulk_wait {pending = 0, read = false}\n", ""}}),
              AllSay("thread 0 ends while its bulk stores read shared memory"));
}

TEST(Broken, ABulkStoreThatIsNotCommitted) {
  EXPECT_THAT(Messages("copy_rank3", {{"    bulk_commit\n", ""}}),
              AllSay("thread 0 ends before it commits its bulk stores"));
  EXPECT_THAT(Messages("copy_rank3", {{"    bulk_commit\n", ""},
                                      {"    bulk_store {", "    bulk_commit\n    bulk_store {"}}),
              AllSay("thread 0 ends before it commits its bulk stores"));
}

TEST(Broken, ABulkStoreOfTheGroupThatMayStillBePending) {
  const std::string store = "    bulk_store {", commit = "    bulk_commit\n",
                    wait = "    bulk_wait {pending = 0, read = false}\n";
  const Change write{
      wait, "    bulk_wait {pending = 1, read = true}\n    @out[0, 0] = bf16(0.0)\n" + wait};
  // The group with the store is the last of two, or the one before.
  EXPECT_THAT(Messages("copy_rank3", {write, {store, commit + store}}), AllSay("race: "));
  EXPECT_THAT(Messages("copy_rank3", {write, {commit, commit + commit}}), testing::Each(""));
}

TEST(Broken, MisalignedSlots) {
  const Change pad{"  alloc @tile", "  alloc @pad: bf16 shared[64]\n  alloc @tile"};
  EXPECT_THAT(Messages(kCopy, {pad, {"align 1024", "align 128"}}),
              AllSay("@tile[0, 0] lies at byte 128, which is not a multiple of 1024"));
  EXPECT_THAT(
      Messages("copy_bf16_swizzle0", {pad, {"align 128", "align 16"}, {"[64]\n", "[40]\n"}}),
      AllSay("which is not a multiple of 128"));
}

TEST(Broken, ABoxThatNoCopyTakes) {
  EXPECT_THAT(Messages("copy_rank1", {{"box = [256]", "box = [257]"}}),
              AllSay("a box with rows of 1028 bytes"));
  EXPECT_THAT(Messages("copy_rank1", {{"box = [256]", "box = [260]"}}),
              AllSay("a box extent of 260, expected 1 to 256"));
  EXPECT_THAT(Messages(kCopy, {{"box = [64, 64]", "box = [64, 32]"}}),
              AllSay("a box with rows of 64 bytes, swizzle 128"));
}

TEST(Broken, MbarriersBeforeTheirInitIsSeen) {
  EXPECT_THAT(Messages(kCopy, {{"  barrier\n", ""}}),
              testing::Each(testing::AnyOf(HasSubstr("with no barrier after its mbarrier_init"),
                                           HasSubstr("is used before its mbarrier_init"))));
  // The warp of the thread that initialises them, alone.
  const std::string wait = "  mbarrier_wait {barrier = @full, index = 0, parity = 0}\n";
  EXPECT_THAT(Messages(kCopy, {{"  barrier\n", ""},
                               {wait, "  if (thread.x < 32) {\n" + wait + "  }\n  barrier\n"}}),
              AllSay("by thread 1 with no barrier after its mbarrier_init"));
}

TEST(Broken, AnAccumulatorBeforeItsWait) {
  EXPECT_THAT(Messages("product_bf16", {{"wgmma_wait {pending = 0}", "wgmma_wait {pending = 1}"}}),
              AllFail());
}

TEST(Broken, RegistersWithoutTheirFence) {
  EXPECT_THAT(Messages("product_f16", {{"      wgmma_fence\n", ""}}),
              AllSay("was touched by thread 0 after its last wgmma_fence"));
  EXPECT_THAT(Messages("product_bf16_registers", {{"      wgmma_fence\n", ""}}),
              AllSay("@fragment[0] was touched by thread 0 after its last wgmma_fence"));
}

TEST(Broken, AFragmentWrittenWhileItIsRead) {
  EXPECT_THAT(
      Messages("product_bf16_registers",
               {{"      wgmma_commit\n", "      wgmma_commit\n      @fragment[0] = bf16(0.0)\n"}}),
      AllSay(" while a wgmma may still read it"));
}

TEST(Broken, WgmmaByAPartOfAWarpgroup) {
  EXPECT_THAT(Messages("product_f16", {{"role first 0 warps 4", "role first 0 warps 3"}}),
              AllSay("3 of the 4 warps of its warpgroup"));
}

TEST(Broken, NamedBarriersThatDoNotFitTheirRole) {
  EXPECT_THAT(
      Messages("copy_named_barrier", {{"id = 1, threads = 64", "id = 1, threads = 96"}}),
      AllSay("deadlock: no warp can go on; warps 0 to 1 at role first 0 / named_barrier: 64 of 96 "
             "threads have arrived"));
  EXPECT_THAT(Messages("copy_named_barrier", {{"named_barrier {id = 1, threads = 64}", "barrier"}}),
              AllSay("64 of 128 threads have arrived"));
  EXPECT_THAT(Messages("copy_named_barrier", {{"named_barrier {id = 1, threads = 64}", ""}}),
              AllFail());
}

TEST(Broken, AtomicsAreNoRacesButPlainAccessesBesideThemAre) {
  EXPECT_THAT(Messages("sum_atomic", {{"atomic_add {buffer = @y, indices = [thread.x], value = "
                                       "@row[thread.x], guard = (thread.x < n)}",
                                       "@y[thread.x] = @row[thread.x] when (thread.x < n)"}}),
              AllSay("@y[0]: race: second write by thread 0 of block 1"));
  EXPECT_THAT(
      Messages("sum_atomic", {{"guard = (((thread.x % 2) == 0) && ((thread.x // 2) < n))}\n",
                               "guard = (((thread.x % 2) == 0) && ((thread.x // 2) < n))}\n"
                               "@row[thread.x] = 0.0\n"}}),
      AllSay("race: second write"));
}

}  // namespace
}  // namespace hackc::kernels
