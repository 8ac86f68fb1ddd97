"""Compares generated types with the schemas that they were generated from: names and descriptions.

    compare.py SCHEMAS OUT      OUT has py/ and ts/, as check.sh writes them
"""
import ast
import json
import pathlib
import re
import sys

FILES = ("bundle", "chunk", "turn-summary", "config")

# Names that generators are known to make up, by file, with the languages that have them: {("bundle", "Type1"): {"py"}}.
MADE_UP: dict[tuple[str, str], set[str]] = {}

# Names and descriptions that generators are known to lose, by file and path, with the languages that lose them.
LOST: dict[tuple[str, str], set[str]] = {}


def descriptions(schema, path=""):
    """The descriptions of types and properties with their paths."""
    if isinstance(schema, dict):
        if isinstance(schema.get("description"), str):
            yield path, schema["description"]
        for key, inner in schema.items():
            if not key.startswith("x-"):
                yield from descriptions(inner, f"{path}/{key}")
    elif isinstance(schema, list):
        for number, inner in enumerate(schema):
            yield from descriptions(inner, f"{path}/{number}")


def plain(text):
    """A text as both sides have it: generators wrap lines and escape characters."""
    return " ".join(text.replace("\\", "").replace("*/", "").split())


def python(text):
    """Names and texts of a generated Python module."""
    tree = ast.parse(text)
    names = {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    return names, {plain(node.value) for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def typescript(text):
    """Names and doc comments of a generated TypeScript module."""
    names = set(re.findall(r"^export (?:interface|type|enum) (\w+)", text, re.MULTILINE))
    comments = re.findall(r"/\*\*(.*?)\*/", text, re.DOTALL)
    return names, {plain(re.sub(r"^\s*\* ?", "", comment, flags=re.MULTILINE)) for comment in comments}


def faults(schemas, out):
    """Every difference, as a line of text. A known one that is gone is a fault, too, so that the lists stay true."""
    lost, made_up = {}, {}
    for file in FILES:
        schema = json.loads((schemas / f"{file}.schema.json").read_text())
        types = {*schema["$defs"], schema["title"]}
        for language, read, name in (("py", python, file.replace("-", "_")), ("ts", typescript, file)):
            names, texts = read((out / language / f"{name}.{language}").read_text())
            for extra in names - types:
                made_up.setdefault((file, extra), set()).add(language)
            for missing in types - names:
                lost.setdefault((file, f"/$defs/{missing}"), set()).add(language)
            for path, text in descriptions(schema):
                if plain(text) not in texts:
                    lost.setdefault((file, path), set()).add(language)
    for what, found, listed in (("made-up name", made_up, MADE_UP), ("lost name or description", lost, LOST)):
        for key in sorted({*found, *listed}):
            have, known = found.get(key, set()), listed.get(key, set())
            yield from (f"{what}: {' '.join(key)} ({language})" for language in sorted(have - known))
            yield from (f"listed, but no {what}: {' '.join(key)} ({language})" for language in sorted(known - have))
    # The types of the OpenRPC document are those of the bundle, so that no generator has to read both.
    types = json.dumps(json.loads((schemas / "openrpc.json").read_text())["components"]["schemas"], sort_keys=True)
    bundle = json.dumps(json.loads((schemas / "bundle.schema.json").read_text())["$defs"], sort_keys=True)
    if types.replace("#/components/schemas/", "#/$defs/") != bundle:
        yield "openrpc.json: its types are not those of bundle.schema.json"


def main():
    found = list(faults(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])))
    for fault in found:
        print(fault, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
