# SPDX-License-Identifier: MIT
"""The seeded faults: small mistakes of the kind that compilers have, one each.

F(file, old, new, why not caught): `old` stands once in <file>, which is below compiler/ or, with its room's name, in the
client. `new` replaces it where the fault is on:
`@` in it stands for "is on", for text that is neither an expression nor a statement. "" drops a statement. Faults are
applied in order, so that a later one may lie inside the text of an earlier one. A fault that tests need not catch
has the reason.
"""

import collections

Fault = collections.namedtuple("Fault", "file old new reason")


def F(file, old, new, reason=""):
    return Fault(file, old, new, reason)


SPLIT, SOFTMAX, DISTRIBUTE = "passes/tile/split_axes.cc", "passes/tile/expand_softmax.cc", "passes/kernel/distribute.cc"
VECTOR, RING, BARRIER = ("passes/kernel/vectorize.cc", "passes/kernel/pipeline_copies.cc",
                         "passes/kernel/insert_barriers.cc")
BUILDER, MERGE, GRAPH = "passes/loop/loop_builder.cc", "passes/loop/merge_launches.cc", "passes/tensor/lower_graph.cc"
JOIN, SIMPLIFY, RANGES = "passes/graph/fuse_projections.cc", "ir/simplify.cc", "ir/ranges.cc"
CHECKS, UNITS, UNIT_MEMORY = "ir/kernel_checks.cc", "ir/unit_verify.cc", "ir/unit_memory_verify.cc"
PARTS = "passes/loop/split_reductions.cc"
PROOF, KERNEL, TILE, STMT = "ir/bounds_proof.cc", "ir/kernel_verify.cc", "ir/tile_verify.cc", "ir/stmt_verify.cc"
WARPS, WGMMA = "interp/warp_block.cc", "ir/wgmma_layout.h"
FITS = "schedule/check_schedule.cc"
FACTS, CONFIG, ROPE = "frontend/architecture_facts.cc", "frontend/decoder_config.cc", "frontend/rope_parameters.cc"
EMIT, EXPR, PLAN, CARRY = ("codegen/cuda_emitter.cc", "codegen/cuda_expr.cc", "program/workspace_plan.cc",
                           "program/settle_carries.cc")

FAULTS = [
    # ---- masks and tiles
    F(SPLIT, "if (!ProveLess(info.global, extent, ranges_)) info.valid = Lt(info.global, extent);", ""),
    F(SPLIT, "Lt(info.global, extent)", "Le(info.global, extent)"),
    F(SPLIT, "IntLit(local->local - 1)", "IntLit(0)"),
    F(SPLIT, "if (!is_kept) states_.at(update.name).partial_over |= ThreadMask(info.digits);", ""),
    F(SPLIT, "if (info.role != AxisRole::kFree) guard = And(guard, info.valid);", ""),
    F(SPLIT, "for (const AxisInfo& info : context_) guard = And(guard, info.valid);", ""),
    F(SPLIT, "if (!ProveLess(index, buffer->shape[i], ranges_))\n"
             "        load.guard = And(load.guard, Lt(index, buffer->shape[i]));", ""),
    F(SPLIT, "Mod(turn, stage.depth)", "Mod(turn, stage.depth - 1)"),
    F(SPLIT, "axes_.at(axes[i]).base", "IntLit(0)"),
    F(SPLIT, "if (layout && *layout != digits) agree = false;", ""),
    F("ir/digits.h", "stride *= span;", ""),
    F(SPLIT, "(*static_extent + tile - 1) / tile * tile", "*static_extent"),
    F(SPLIT, "Axis(step_name) * info.local", "Axis(step_name)"),
    # ---- softmax
    F(SOFTMAX, "MakeStmt(Store{state.maximum, {}, FloatLit(-kInfinity), nullptr})",
      "MakeStmt(Store{state.maximum, {}, FloatLit(0), nullptr})"),
    F(SOFTMAX, "Lt(at(score_axis), end)", "Le(at(score_axis), end)"),
    F(SOFTMAX, 'score_loop.push_back(MakeStmt(Let{As<Var>(masked_var)->name, masked}));',
      'score_loop.push_back(MakeStmt(Let{As<Var>(masked_var)->name, MakeSelect(Lt(at(score_axis), end), '
      'bind(update->operands[0], score_axis), FloatLit(0))}));'),
    F(SOFTMAX, "MakeSelect(MakeBinary(BinaryOp::kEq, peak, FloatLit(-kInfinity)), FloatLit(0), peak)", "peak"),
    F(SOFTMAX, "old_sum * rescale", "old_sum"),
    F(SOFTMAX, "LocalScalar(state.total) * rescale + MakeVar(chunk_sum, DType::kF32)",
      "LocalScalar(state.total) + MakeVar(chunk_sum, DType::kF32)"),
    F(SOFTMAX, "And(load.guard, Lt(Axis(axis), bound))", "load.guard"),
    F(SOFTMAX, "CeilDiv(end, chunk)", "FloorDiv(end, chunk)"),
    # ---- threads and registers
    F(DISTRIBUTE, "left == 0 ? index : Mod(index, loops[i]->extent)", "index"),
    F(DISTRIBUTE, "FloatLit(Identity(acc.monoid)[0])", "FloatLit(0)"),
    F(DISTRIBUTE, "if (update.guard) total = MakeSelect(Map(update.guard), total, old);", ""),
    F(DISTRIBUTE, "copy.guard = And(copy.guard, MakeBinary(BinaryOp::kEq, bits, IntLit(0)));", ""),
    F(DISTRIBUTE, "(combine.thread_mask & bit) == 0", "(combine.thread_mask & bit) == 0 || bit == 16"),
    F(DISTRIBUTE, "int warps = combine.thread_mask & ~31;", "int warps = @ ? 0 : combine.thread_mask & ~31;"),
    F(DISTRIBUTE, "nest_mask_ |= ThreadMask(loop.digits);", ""),
    F(DISTRIBUTE, "if (!Varies(*a, m.axis)) std::swap(a, b);", ""),
    F(DISTRIBUTE, "Expr column = FloorDiv(lane, 16) * 8;", "Expr column = FloorDiv(lane, @ ? 8 : 16) * 8;"),
    F(DISTRIBUTE, "bool transposed = !Varies(*b, k.axis, b->indices.size() - 1);",
      "bool transposed = !@ && !Varies(*b, k.axis, b->indices.size() - 1);"),
    F(DISTRIBUTE, "(rows.index * columns.count + columns.index) * 4", "(columns.index * rows.count + rows.index) * 4"),
    F(DISTRIBUTE, "EndsWith(layout[d], kRowEnd)", "false"),
    F(DISTRIBUTE, "DigitsOf(k, \"w\", 1).coordinate * 16", "DigitsOf(k, \"w\", 1).coordinate * 0"),
    F(DISTRIBUTE, "columns.index * 4}", "(@ ? IntLit(0) : columns.index * 4)}"),
    F(DISTRIBUTE, "index * extent + value;\n    return index;", "(@ ? index + value : index * extent + value);\n"
                                                                "    return index;"),
    # ---- vectors
    F(VECTOR, "if (!Divides(Substitute(binary->a, axis, IntLit(0)), width) || !Divides(binary->b, width))\n"
              "      return std::nullopt;", ""),
    F(VECTOR, "if (*row && !Divides(*row, width)) return false;", ""),
    F(VECTOR, "IntLit(0) : Axis(axis) * width;", "IntLit(0) : @ ? Axis(axis) : Axis(axis) * width;"),
    F(VECTOR, "when, store->cache})", "@ ? Expr() : when, store->cache})"),
    # ---- rings and barriers
    F(RING, "pipelined.body = {MakeStmt(AsyncWait{depth - 2}), MakeStmt(Barrier{})};",
      "pipelined.body = {MakeStmt(AsyncWait{depth - 2}), MakeStmt(Barrier{})};\n    if (@) pipelined.body.pop_back();"),
    F(RING, "AsyncWait{depth - 2}", "AsyncWait{depth - (@ ? 1 : 2)}"),
    F(RING, "if (nested) first.push_back(MakeStmt(Barrier{}));", ""),
    F(RING, "for (int i = 0; i + 1 < depth; ++i) fill(", "for (int i = 0; i + (@ ? 2 : 1) < depth; ++i) fill("),
    F(RING, "Axis(loop.axis) + (depth - 1)", "Axis(loop.axis) + depth"),
    F(RING, "into.push_back(MakeStmt(AsyncCommit{}));", ""),
    F(BARRIER, "write(store.target);", ""),
    F(BARRIER, "[&](const LoadMatrix& load) { read(load.source); }",
      "[&](const LoadMatrix& load) { if (!@) read(load.source); }"),
    F(BARRIER, "since.written.count(name) || since.read.count(name)", "since.written.count(name) > 0"),
    F(BARRIER, "state.Join(use);\n        out.push_back(stmt);", "out.push_back(stmt);"),
    # ---- loops
    F(BUILDER, "if (DependsOn(op, value)) return {};", ""),
    F(BUILDER, "a * Value(Substitute(contract.b, bound))", "a + Value(Substitute(contract.b, bound))"),
    F(MERGE, "if (a_.fn.fn.buffers[i].access != Access::kRead) return false;", ""),
    F(PARTS, "Max(Min(length, Substitute(reduce_->extent, place) - first), IntLit(0))", "length"),
    F(PARTS, "first + Axis(t)", "Axis(t)"),
    F(PARTS, "FloorDiv(Axis(grouped_), group_)", "Mod(Axis(grouped_), group_)"),
    F(PARTS, "Axis(group) * group_ + Axis(name)", "Axis(group) + Axis(name)"),
    F(PARTS, "CeilDiv(longest_, parts_ * kPartUnit)", "FloorDiv(longest_, parts_ * kPartUnit)"),
    F(PARTS, "Monoid::kLogSumExp, {}, {}", "@ ? Monoid::kMax : Monoid::kLogSumExp, {}, {}"),
    F(PARTS, "absl::c_all_of(FreeVars(limited), grows)", "true"),
    F(PARTS, "extent % *sizes.begin() == 0", "true"),
    F(MERGE, "if (b_.fn.fn.buffers[k].access != Access::kRead) return false;", ""),
    F("passes/tensor/inline_views.cc",
      "if (std::holds_alternative<TensorScatter>(op.op)) states.insert(op.out);", ""),
    F("passes/tensor/inline_views.cc", "And(read.guard, load.guard)", "read.guard"),
    F("passes/loop/lower_tensor.cc", "if (sinks.size() > 1 && FinishesASum(op)) return false;", ""),
    F(BUILDER, "if (fused && n.guard) {", "if (fused && n.guard && !@) {"),
    F(SOFTMAX, "MakeLoad(state->sum, DType::kF32, load->indices, load->guard)",
      "MakeLoad(state->sum, DType::kF32, load->indices)"),
    # ---- algebra of the model
    F(GRAPH, "mean + Number(n.epsilon)", "mean"),
    F(GRAPH, "score * Number(n.scale)", "score"),
    F(GRAPH, "MakeSelect(first, Number(-1), Number(1))", "MakeSelect(first, Number(1), Number(-1))"),
    F(GRAPH, "Wide(n.x, at_) * scale * weight", "Wide(n.x, at_) * scale"),
    F(GRAPH, "at_[2] * n.head_dim + at_[3] + n.first", "at_[2] * n.head_dim + at_[3]"),
    F(GRAPH, "index[0] = at_[0] - begin;", "index[0] = at_[0];"),
    F(GRAPH, "And(Le(IntLit(0), page), Lt(page, cache[0]))", "Lt(page, cache[0])"),
    F(GRAPH, "FloorDiv(at[1], cache[1])", "FloorDiv(at[1], cache[0])"),
    F(GRAPH, "Mod(at[1], cache[1])", "Mod(at[1] + 1, cache[1])"),
    F(GRAPH, "Value(n.positions, {at_[0]})", "Value(n.positions, {IntLit(0)})"),
    F(GRAPH, "Value(past_lengths, {b})", "Value(past_lengths, {IntLit(0)})"),
    F(GRAPH, "Lt(start + s - t, IntLit(n.window))", "Lt(s - t, IntLit(n.window))"),
    F(GRAPH, "start - (n.window - 1)", "start - n.window"),
    F(GRAPH, "end = end - first;", ""),
    F(GRAPH, "F32(start + op_->type.shape[1])", "F32(op_->type.shape[1])"),
    F(GRAPH, "Divide(x, one + Unary(UnaryOp::kExp, Unary(UnaryOp::kNeg, x)))", "Divide(x, one + Unary(UnaryOp::kExp, x))"),
    F(JOIN, "first += AsInt(segment.ops[i].type.shape.back()).value_or(0);", ""),
    F(JOIN, "features = features + weight.type.shape[0];", "features = weight.type.shape[0];"),
    # ---- index arithmetic
    F(SIMPLIFY, "bounds.min >= 0 && bounds.max < size", "bounds.max < size"),
    F(SIMPLIFY, "*period % divisor != 0", "*period < divisor"),
    F(SIMPLIFY, "sum.terms[j].coefficient != wanted", "sum.terms[j].coefficient < wanted"),
    F(SIMPLIFY, "if (!ProveLess(n->b, n->a, ranges_)) return nullptr;",
      "if (!ProveLessEqual(n->b, n->a, ranges_)) return nullptr;"),
    F(RANGES, "b.max - 1)}", "b.max - (@ ? 2 : 1))}"),
    F(RANGES, "kNoLimit ? a : FloorDivide(a, b)", "kNoLimit ? a : @ ? a / b : FloorDivide(a, b)"),
    F(RANGES, "Bounds(extent, *this).max - 1", "Bounds(extent, *this).max - 2"),
    F(RANGES, "std::gcd(a, b)", "a"),
    F(RANGES, "term.coefficient < 0 ? extent - 1 : IntLit(0)", "IntLit(0)"),
    F(RANGES, "MakeBinary(BinaryOp::kSub, b, a) - 1", "MakeBinary(BinaryOp::kSub, b, a)"),
    F(SIMPLIFY, "!IsExact(result, ranges_) && IsExact(e, ranges_)", "false"),
    F(PROOF, "!extent || Bounds(binary->b, ranges_).min < 0", "!extent"),
    F(PROOF, "large - small - std::max<int64_t>(1, gap)", "large - small - 2 * std::max<int64_t>(1, gap)"),
    # ---- verifiers
    F(KERNEL, "if (Control() != Varies::kNever)", "if (!@ && Control() != Varies::kNever)"),
    F(KERNEL, "range.min < 1 || range.max > most", "range.min < 1"),
    F(KERNEL, "shared > limits_.shared_bytes", "false"),
    F(KERNEL, "by > Control()", "false"),
    F(CHECKS, "if (!aligned)", "if (!@ && !aligned)"),
    F(CHECKS, "divisor * KnownDivisor(step) % elements == 0", "divisor % elements == 0 || KnownDivisor(step) > 1"),
    F(UNITS, "static_cast<int>(arriving.count()) != all.count", "false"),
    F(UNITS, "if (*bytes != n.bytes)", "if (!@ && *bytes != n.bytes)"),
    F(UNITS, "SaturatedProduct(*trips, *inside)", "*inside"),
    F(UNITS, "load->barrier != arrive.barrier || !Equal(load->barrier_index, arrive.index)",
      "load->barrier != arrive.barrier"),
    F(UNITS, "overlap = overlap ||", "overlap = @ ? false : overlap ||"),
    F(UNITS, "Within(event.nest, load.nest)", "true"),
    F(UNITS, "prover_.BoundsOf(loop->extent).max > 1", "true"),
    F(UNITS, "return all.in_rounds && absl", "return (@ || all.in_rounds) && absl"),
    F(UNITS, "used > all", "false"),
    F(UNIT_MEMORY, "std::max(128, 8 * map->swizzle)", "128"),
    F(UNIT_MEMORY, "extent < 1 || extent > 256", "extent < 1"),
    F(UNIT_MEMORY, "if (!Reaches(name, indices, bytes / SizeOf(dtype)))",
      "if (!@ && !Reaches(name, indices, bytes / SizeOf(dtype)))"),
    F(TILE, "if (bits & ThreadMask(outer->digits))", "if (!@ && (bits & ThreadMask(outer->digits)))"),
    F(TILE, "CoordinateCount(layout[i]) != extent", "false"),
    F(STMT, "!prover_.Less(last, info->extents[i])", "false"),
    F(STMT, "!defined_.insert(name).second", "!defined_.insert(name).second && !@"),
    F(STMT, "indices[i] + (width - 1)", "indices[i]"),
    F(STMT, "ReadsConstants(part)", "true"),
    F(STMT, "by.max >= 8 * SizeOf(e->dtype)", "false"),
    F(STMT, "!prover_.Less(IntLit(0), n->b)", "false"),
    F("ir/shared_layout.cc", "SaturatedSum(layout.total_bytes, alloc->alignment - 1) / alloc->alignment *\n"
                             "                     alloc->alignment", "layout.total_bytes"),
    F("ir/module_verify.h", "type != nullptr && inside.ShapeError(*type).empty()", "type != nullptr"),
    # ---- what the interpreter knows of the units of a GPU
    F("interp/lane_memory.cc", "Note(adders_[offset], by);", ""),
    F("interp/scalar_ops.cc", "wide || from == ir::DType::kF64 ? least : 0", "0"),
    F(WARPS, "barrier.pending != 0 || barrier.bytes != 0", "barrier.pending != 0"),
    F(WARPS, "lane != 0 && order_[lane].seen[0] < barrier.init_epoch", "false"),
    F(WARPS, "static_cast<int>(queue.groups.size()) > pending", "static_cast<int>(queue.groups.size()) > pending + 1"),
    F(WARPS, "const int epoch = groups[size - 1 - pending];", "const int epoch = groups[size - 1 - (@ ? 0 : pending)];"),
    F("interp/warpgroup_matrix.cc", "if (!shared_a) warps.Hold(warp, {&a.memory, a.offset, a_count});", ""),
    F(WGMMA, "byte_address >> 3 & (swizzle - 16)", "byte_address >> 4 & (swizzle - 16)"),
    F(WGMMA, "row / width * (swizzled ? layout.leading : layout.stride)",
      "row / width * (swizzled || @ ? layout.leading : layout.stride)"),
    F(WGMMA, "k / 8 * (swizzled ? layout.stride : layout.leading)",
      "k / 8 * (swizzled || @ ? layout.stride : layout.leading)"),
    # ---- which schedules fit
    F(FITS, "(ThreadMask(cut.digits) & ThreadMask(outer.cut.digits)) == 0", "true"),
    F(FITS, "absl::c_none_of(update.indices, [&](const Expr& e) { return Uses(e, name); })", "true"),
    F(FITS, "depth == stage.depth, \"stage", "@ || depth == stage.depth, \"stage"),
    F(FITS, "shared_bytes_ <= target_.shared_bytes_per_block, shared_bytes_,",
      "@ || shared_bytes_ <= target_.shared_bytes_per_block, shared_bytes_,"),
    # ---- CUDA text
    F(EMIT, "if (load.guard) {", "if (!@ && load.guard) {"),
    F(EMIT, 'Line(Guard(store.guard), "*("', 'Line(@ ? std::string() : Guard(store.guard), "*("'),
    F(EMIT, 'Line("__syncthreads();");', ""),
    F(EMIT, 'CallWith(wait.pending, "copy_async_wait")',
      'CallWith(wait.pending + (@ ? 1 : 0), "copy_async_wait")'),
    F(EMIT, 'load.transposed ? "_transposed" : ""', '""'),
    F(EXPR, "bool plain = ir::ProveNonNegative", "bool plain = @ || ir::ProveNonNegative"),
    F(EXPR, "precedence + (flat ? 0 : 1)", "precedence"),
    F(EXPR, '" : (", Type(n->dtype), ")0");', '" : (", Type(n->dtype), @ ? ")1" : ")0");'),
    F(EXPR, "range.max > std::numeric_limits<int32_t>::max()", "false"),
    # ---- programs
    F(PLAN, "slot.busy_until >= life.first", "slot.busy_until > life.first"),
    F(PLAN, "if (from_outside) touch(arg, end);", ""),
    F(PLAN, "touch(carry.inside, end);", ""),
    F(CARRY, "LastRead(carry.inside, s) >= Making(carry.yield, s)", "LastRead(carry.inside, s) > Making(carry.yield, s)"),
    F(CARRY, "taken.insert(carry.initial).second", "true"),
    F(CARRY, "!yielded.insert(carry.yield).second", "false"),
    F(CARRY, "!ReadFrom(carry.initial, s)", "true"),
    F("compile.cc", "symbol->min = symbol->max + 1;", "symbol->min = symbol->max;"),
    F("compile.cc", "if (end < symbol->min || symbol->min > ends.back()) continue;", ""),
    F("client/runtime/runtime.cc", "found->second < symbol.min() || found->second > symbol.max()",
      "found->second < symbol.min()"),
    F("client/runtime/program_check.cc", "return a.name() == b.name();", "return @ ? false : a.name() == b.name();"),
    F("client/runtime/safetensors.cc", "tensor.data - data != end", "false"),
    F("client/runtime/safetensors.cc", "end != data_bytes", "false"),
    F("client/runtime/json_text.cc", "!level.value->contains(level.key)", "true"),
    F("client/cli/output_folder.cc", "HACKC_RETURN_IF_ERROR(RemoveProgram(directory));", ""),
    F("program/split_prepare.cc", "if (read && flow_.values[launch.args[k]].per_iteration) return true;", ""),
    # ---- what a config means
    F(FACTS, ".default_head_dim = 128", ".default_head_dim = @ ? 64 : 128"),
    F(FACTS, '"Qwen3ForCausalLM",\n       .qkv_bias = BiasRule::kAttentionBiasKey',
      '"Qwen3ForCausalLM",\n       .qkv_bias = @ ? BiasRule::kNever : BiasRule::kAttentionBiasKey'),
    F(FACTS, ".output_bias = BiasRule::kAttentionBiasKey,\n       .query_key_norm = true",
      ".output_bias = @ ? BiasRule::kNever : BiasRule::kAttentionBiasKey,\n       .query_key_norm = true"),
    F(FACTS, ".default_max_positions = 131072", ".default_max_positions = @ ? 32768 : 131072"),
    F("frontend/architecture_facts.h", "default_max_positions = 2048", "default_max_positions = @ ? 4096 : 2048"),
    F(CONFIG, "max_positions.value_or(decoder.facts->default_max_positions)", "max_positions.value_or(2048)"),
    F(CONFIG, "epsilon.value_or(1e-6)", "epsilon.value_or(1e-5)"),
    F(CONFIG, 'reader.Bool("tie_word_embeddings", false)', 'reader.Bool("tie_word_embeddings", true)'),
    F(CONFIG, "if (!name) return ir::ActivationKind::kSilu;", "if (!name) return ir::ActivationKind::kGelu;"),
    F(CONFIG, '{"gelu", ir::ActivationKind::kGelu}', '{"gelu", @ ? ir::ActivationKind::kGeluTanh : ir::ActivationKind::kGelu}'),
    F(CONFIG, '{"relu", ir::ActivationKind::kRelu}', '{"relu", @ ? ir::ActivationKind::kSilu : ir::ActivationKind::kRelu}'),
    F(CONFIG, "heads.value_or(decoder.heads)", "heads.value_or(1)"),
    F(CONFIG, 'reader.IsExplicitNull("num_key_value_heads")', "false"),
    F(ROPE, "double theta = 10000;", "double theta = @ ? 500000 : 10000;"),
    F(ROPE, "original.value_or(context.max_positions)", "original.value_or(4096)"),
    F(ROPE, "mscale && mscale_all_dim", "false"),
    F(ROPE, "if (attention_factor) {", "if (!@ && attention_factor) {"),
    F(ROPE, "beta_fast.value_or(32)", "beta_fast.value_or(16)"),
    F(ROPE, "beta_slow.value_or(1)", "beta_slow.value_or(2)"),
    F(ROPE, "if (truncate) {", "if (@ || truncate) {"),
    F(ROPE, '!reader.IsExplicitNull("truncate")', "true"),
    F(ROPE, "options.batch.max > 1", "false"),
    F(ROPE, "options.seq.max <= options.past.max", "options.seq.max < options.past.max"),
    F(ROPE, 'HACKC_RETURN_IF_ERROR(RefuseDifference(*parameters, *scaling, config, "rope_scaling"));', ""),
    F("frontend/config_reader.cc", "key.size() <= 60", "true"),
    F("frontend/config_reader.cc", "plain && !key.empty()", "plain"),
]
