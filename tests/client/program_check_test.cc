// SPDX-License-Identifier: MIT
#include "client/runtime/program_check.h"

#include <functional>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/client/formula_builder.h"
#include "tests/client/status_matcher.h"
#include "tests/client/tiny_program.h"

namespace hackc::client {
namespace {

using absl::StatusCode;

TEST(ProgramCheck, AcceptsAWholeProgram) { EXPECT_THAT(CheckProgram(TinyProgram()), Ok()); }

struct Damage {
  std::string expected;
  std::function<void(v1::Program*)> apply;
};

// Every way in which a damaged or hostile file could send the runtime out of bounds.
TEST(ProgramCheck, RefusesEachDamageByItsPath) {
  auto head = [](v1::Program* p) { return p->mutable_kernels(kHead); };
  auto launch = [](v1::Program* p) {
    return p->mutable_entry_points(0)->mutable_steps(0)->mutable_launch();
  };
  auto layers = [](v1::Program* p) {
    return p->mutable_entry_points(0)->mutable_steps(1)->mutable_repeat();
  };
  std::vector<Damage> damages = {
      {"buffers[1]: id is 9", [](auto* p) { p->mutable_buffers(1)->set_id(9); }},
      {"buffers[2]: unknown dtype", [](auto* p) { p->mutable_buffers(2)->clear_dtype(); }},
      {"buffers[5]: repeat_count on a WORKSPACE",
       [](auto* p) { p->mutable_buffers(kHidden)->set_repeat_count(2); }},
      {"buffers[2]: repeat_count is 4294967295",
       [](auto* p) { p->mutable_buffers(kWeight)->set_repeat_count(4294967295u); }},
      {"buffers[2]: a WEIGHT without weight_name",
       [](auto* p) { p->mutable_buffers(kWeight)->clear_weight_name(); }},
      {"buffers[2]: layer_step is 0",
       [](auto* p) { p->mutable_buffers(kWeight)->set_layer_step(0); }},
      {"buffers[1]: name 'input_ids' is empty or not unique",
       [](auto* p) { p->mutable_buffers(kLogits)->set_name("input_ids"); }},
      {"kernels[4]: no entry name", [&](auto* p) { head(p)->clear_entry(); }},
      {"kernels[4]: grid needs 3", [&](auto* p) { head(p)->mutable_grid()->RemoveLast(); }},
      {"kernels[4]: block needs 3", [&](auto* p) { head(p)->mutable_block()->RemoveLast(); }},
      {"kernels[4]: block has no or over 1024", [&](auto* p) { head(p)->set_block(1, 9); }},
      {"kernels[4]: block has no or over 1024", [&](auto* p) { head(p)->set_block(0, 0); }},
      {"kernels[4]: cluster needs 3", [&](auto* p) { head(p)->mutable_cluster()->RemoveLast(); }},
      {"kernels[4]: cluster extent 0", [&](auto* p) { head(p)->set_cluster(2, 0); }},
      {"kernels[4]: valid: unknown symbol 'x'",
       [&](auto* p) { head(p)->mutable_valid(0)->set_name("x"); }},
      {"kernels[4].params[1]: offset 4",
       [&](auto* p) { head(p)->mutable_params(1)->set_offset(4); }},
      {"kernels[4].params[1]: offset 12",
       [&](auto* p) { head(p)->mutable_params(1)->set_offset(12); }},
      {"kernels[4].params[4]: offset 4294967292",
       [&](auto* p) { head(p)->mutable_params(4)->set_offset(4294967292u); }},
      {"kernels[4].params[0]: size 4, expected 8",
       [&](auto* p) { head(p)->mutable_params(0)->set_size(4); }},
      {"kernels[4].params[0]: alignment 24",
       [&](auto* p) { head(p)->mutable_params(0)->set_alignment(24); }},
      {"kernels[4].params[4]: unknown symbol ''",
       [&](auto* p) { head(p)->mutable_params(4)->clear_symbol(); }},
      {"kernels[4].params[4]: incomplete tensor_map",
       [&](auto* p) {
         head(p)->mutable_params(4)->set_kind(v1::Param::TENSOR_MAP);
         head(p)->mutable_params(4)->set_offset(64);
         head(p)->mutable_params(4)->set_size(128);
       }},
      {"entry_points[0].steps[0]: kernel 99", [&](auto* p) { launch(p)->set_kernel(99); }},
      {"entry_points[0].steps[0]: too few arguments",
       [&](auto* p) { launch(p)->mutable_args()->RemoveLast(); }},
      {"entry_points[0].steps[0]: too many arguments", [&](auto* p) { launch(p)->add_args(); }},
      {"entry_points[0].steps[0].args[1]: buffer 99 does not exist",
       [&](auto* p) { launch(p)->mutable_args(1)->set_buffer(99); }},
      {"entry_points[0].steps[0].args[1]: writes the CONSTANT 'scale'",
       [&](auto* p) { launch(p)->mutable_args(1)->set_buffer(kScale); }},
      {"entry_points[0].steps[0].args[1]: writes the INPUT 'input_ids'",
       [&](auto* p) { launch(p)->mutable_args(1)->set_buffer(kIds); }},
      {"entry_points[0].steps[0].args[1]: writes the WEIGHT 'final'",
       [&](auto* p) { launch(p)->mutable_args(1)->set_buffer(kFinal); }},
      {"entry_points[0].steps[0].args[0]: 'w2' has 3 tensors, the repetition has 0",
       [&](auto* p) { launch(p)->mutable_args(0)->set_buffer(kPrepared); }},
      {"steps[1].repeat.steps[0].args[1]: 'w2' has 3 tensors, the repetition has 4",
       [&](auto* p) { layers(p)->set_count(4); }},
      {"entry_points[0].steps[1]: too many launches",
       [&](auto* p) { layers(p)->set_count(1u << 31); }},
      {"entry_points[0].steps[4]: too many launches",  // none, but walked
       [](auto* p) {
         for (int i = 0; i < 2; ++i) {
           p->mutable_entry_points(0)->add_steps()->mutable_repeat()->set_count(600000);
         }
       }},
      {"buffers[2]: a name of more than 1024 bytes",
       [](auto* p) { p->mutable_buffers(kWeight)->set_weight_name(std::string(2000, 'w')); }},
      {"more than 1048576 tensors",
       [](auto* p) {
         while (p->buffers_size() < 32) {
           v1::Buffer* buffer = p->add_buffers();
           *buffer = p->buffers(kWeight);
           buffer->set_id(p->buffers_size() - 1);
           buffer->set_repeat_count(1 << 16);
         }
       }},
      {"entry_points[0].steps[3]: neither launch nor repeat",
       [](auto* p) { p->mutable_entry_points(0)->add_steps(); }},
      {"repetitions nested too deep",
       [](auto* p) {
         v1::Step* step = p->mutable_entry_points(0)->add_steps();
         for (int i = 0; i < 20; ++i) {
           step->mutable_repeat()->set_count(1);
           step = step->mutable_repeat()->add_steps();
         }
       }},
      {"prepare[0].repeat.steps[0].args[0]: prepare uses the WORKSPACE 'hidden'",
       [](auto* p) {
         p->mutable_prepare(0)
             ->mutable_repeat()
             ->mutable_steps(0)
             ->mutable_launch()
             ->mutable_args(0)
             ->set_buffer(kHidden);
       }},
      {"prepare[0].repeat.steps[0].args[1]: writes the WEIGHT 'w'",
       [](auto* p) {
         p->mutable_prepare(0)
             ->mutable_repeat()
             ->mutable_steps(0)
             ->mutable_launch()
             ->mutable_args(1)
             ->set_buffer(kWeight);
       }},
      {"entry_points[0].inputs: buffer 1 is no INPUT",
       [](auto* p) { p->mutable_entry_points(0)->set_inputs(0, kLogits); }},
      {"entry_points[0].outputs: buffer 77 is no OUTPUT",
       [](auto* p) { p->mutable_entry_points(0)->set_outputs(0, 77); }},
      {"entry_points[1]: name is not unique",
       [](auto* p) { p->add_entry_points()->set_name("prefill"); }},
  };
  for (const Damage& damage : damages) {
    v1::Program program = TinyProgram();
    damage.apply(&program);
    EXPECT_THAT(CheckProgram(program), Fails(StatusCode::kInvalidArgument, damage.expected));
  }
}

TEST(ProgramCheck, OneLayerNeedsNoRepetition) {
  v1::Program program = TinyProgram();
  program.mutable_buffers(kWeight)->set_repeat_count(1);
  program.mutable_buffers(kPrepared)->set_repeat_count(1);
  v1::Step prepare = program.prepare(0).repeat().steps(0);
  *program.mutable_prepare(0) = prepare;
  v1::Step layer = program.entry_points(0).steps(1).repeat().steps(0);
  *program.mutable_entry_points(0)->mutable_steps(1) = layer;
  EXPECT_THAT(CheckProgram(program), Ok());
}

TEST(ProgramCheck, UnrollsNestedRepetitions) {
  v1::Program program = TinyProgram();
  v1::EntryPoint* entry = program.add_entry_points();
  entry->set_name("nested");
  v1::Step::Repeat* outer = entry->add_steps()->mutable_repeat();
  outer->set_count(2);
  v1::Step::Repeat* inner = outer->add_steps()->mutable_repeat();
  inner->set_count(3);
  *inner->add_steps() = program.entry_points(0).steps(1).repeat().steps(0);
  *outer->add_steps() = program.entry_points(0).steps(0);
  ASSERT_THAT(CheckProgram(program), Ok());
  std::vector<std::pair<uint32_t, uint32_t>> seen;
  for (const FlatLaunch& flat : Flatten(entry->steps())) {
    seen.emplace_back(flat.launch->kernel(), flat.iteration);
  }
  EXPECT_THAT(seen,
              testing::ElementsAre(std::pair(kLayer, 0), std::pair(kLayer, 1), std::pair(kLayer, 2),
                                   std::pair(kEmbed, 0), std::pair(kLayer, 0), std::pair(kLayer, 1),
                                   std::pair(kLayer, 2), std::pair(kEmbed, 1)));
}

TEST(ProgramCheck, SizesAreCheckedForOverflow) {
  v1::Buffer buffer;
  buffer.set_name("huge");
  buffer.set_dtype(v1::DTYPE_FLOAT32);
  *buffer.add_shape() = Const(int64_t{1} << 40);
  *buffer.add_shape() = Const(int64_t{1} << 40);
  EXPECT_THAT(EvaluateBytes(buffer, {}), Fails(StatusCode::kOutOfRange, "'huge' exceeds 64 bits"));
  *buffer.mutable_shape(0) = Const(-1);
  EXPECT_THAT(EvaluateBytes(buffer, {}), Fails(StatusCode::kOutOfRange, "negative extent"));
}

}  // namespace
}  // namespace hackc::client
