"""Generates the models and the calls of the client from `schemas/openrpc.json`.

python -m generate            writes the files
python -m generate --check    fails if a file differs from what would be written
"""
