# SPDX-License-Identifier: MIT
"""The protocol's messages, made from proto/hackc/v1 by ../../generate.py when the package is built."""
