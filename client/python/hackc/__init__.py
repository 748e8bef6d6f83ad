# SPDX-License-Identifier: MIT
"""Runs programs that hackc compiled, on PyTorch tensors, without a copy.

    program = hackc.Program("out")                       # a folder written by `hackc-client submit --out`
    program.bind(model.state_dict())                     # Hugging Face names; GPU tensors are used in place
    logits = program.run("prefill", input_ids=ids)["logits"]

A program compiled with `--past 0..N` keeps a key/value cache:

    cache = program.new_states()
    program.run("prefill", {"past": 0}, states=cache, input_ids=ids)
    program.run("decode", {"past": ids.shape[1]}, states=cache, input_ids=next_id)

`libhackc.so` is searched in $HACKC_LIBRARY, then in lib/ beside this tree (a bundle), then in build/lib.
"""

from hackc.program import Graph, HackcError, Program

__all__ = ["Graph", "HackcError", "Program"]
