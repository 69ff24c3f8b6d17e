"""Whether every module has a room: modules by folder, the longest files, imports between folders.

    python tools/house.py            # prints the house of src/basq; exit code 1 if it breaks a rule
    python tools/house.py folder     # of another package

A rule that is broken gets a line: too many loose modules at the top, a file that is too long, folders that import each
other in a circle. Imports inside functions count; those for the type checker alone do not. A loose module stands for
itself in the graph, and the package's own ``__init__`` for the package.
"""

import argparse
import ast
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

MOST_LOOSE = 12
MOST_LINES = 400
N_LONGEST = 5
PACKAGE = Path(__file__).parents[1] / "src" / "basq"

Edges = Counter[tuple[str, str]]
"""How many import statements lead from one room to another."""


def modules_by_folder(package: Path) -> dict[str, int]:
    """Number of modules in every folder, ``__init__`` not counted; "." is the top."""
    folders = [package, *sorted(path.parent for path in package.rglob("*/__init__.py"))]
    return {
        folder.relative_to(package).as_posix(): sum(path.name != "__init__.py" for path in folder.glob("*.py"))
        for folder in folders
    }


def lines_by_file(package: Path) -> list[tuple[int, str]]:
    """Number of lines and name of every file, longest first."""
    files = package.rglob("*.py")
    found = [(len(f.read_text(encoding="utf-8").splitlines()), f.relative_to(package).as_posix()) for f in files]
    return sorted(found, key=lambda pair: (-pair[0], pair[1]))


def runtime_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Every node below this one, but for what stands under ``if TYPE_CHECKING``."""
    below: list[ast.AST] = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
        below = list(node.orelse)
    for child in below:
        yield child
        yield from runtime_nodes(child)


def imports(path: Path, package: Path) -> Iterator[list[str]]:
    """Dotted names that each import statement of a file asks for, a name out of a module with the module's."""
    own = [package.name, *path.relative_to(package).parent.parts]
    for node in runtime_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = own[: len(own) + 1 - node.level] if node.level else []
            module = ".".join([*start, *([node.module] if node.module else [])])
            yield [f"{module}.{alias.name}" for alias in node.names]


def room_of(place: Sequence[str], package: Path) -> str:
    """The folder or the loose module at the top that a place lies in, or the package itself."""
    if not place or place[0] == "__init__":
        return package.name
    is_room = (package / place[0]).is_dir() or (package / f"{place[0]}.py").is_file()
    return place[0] if is_room else package.name


def imports_between_rooms(package: Path) -> Edges:
    """Count the import statements that lead from one room into another."""
    edges: Edges = Counter()
    for path in sorted(package.rglob("*.py")):
        here = room_of(path.relative_to(package).with_suffix("").parts, package)
        for names in imports(path, package):
            inside = [place for first, *place in (name.split(".") for name in names) if first == package.name]
            edges.update((here, there) for there in {room_of(place, package) for place in inside} - {here})
    return edges


def cycle(edges: Edges) -> list[str]:
    """Rooms that import each other in a circle, the first named again at the end; empty if there is none."""
    graph: dict[str, set[str]] = {}
    for importer, imported in edges:
        graph.setdefault(importer, set()).add(imported)
    try:
        TopologicalSorter({room: sorted(graph[room]) for room in sorted(graph)}).prepare()
    except CycleError as error:
        return list(reversed(error.args[1]))  # it goes from what is imported to what imports it
    return []


def broken_rules(package: Path) -> list[str]:
    """One line for each."""
    loose, circle = modules_by_folder(package)["."], cycle(imports_between_rooms(package))
    broken = [f"{name} has {n} lines, at most {MOST_LINES} are allowed: split it by concept"
              for n, name in lines_by_file(package) if n > MOST_LINES]  # fmt: skip
    if loose > MOST_LOOSE:
        broken.append(f"{loose} modules lie loose at the top, at most {MOST_LOOSE} are allowed: give them a folder")
    if circle:
        broken.append(f"imports go in a circle: {' → '.join(circle)}")
    return broken


def describe(package: Path) -> Iterator[str]:
    """The house in lines."""
    yield f"modules by folder (at most {MOST_LOOSE} loose at the top)"
    folders = modules_by_folder(package)
    yield from (f"  {n:4d}  {'the top' if folder == '.' else folder}" for folder, n in folders.items())
    yield f"  {sum(folders.values()):4d}  together"
    yield f"\nlongest files (at most {MOST_LINES} lines)"
    yield from (f"  {n:4d}  {name}" for n, name in lines_by_file(package)[:N_LONGEST])
    yield "\nimports between folders"
    edges = imports_between_rooms(package)
    for room in sorted({importer for importer, _ in edges}):
        counts = ", ".join(f"{there} {n}" for (here, there), n in sorted(edges.items()) if here == room)
        yield f"  {room} → {counts}"
    yield "  there is a cycle" if cycle(edges) else "  no cycle"


def main(arguments: list[str] | None = None) -> int:
    """Print the house; 1 if a rule is broken."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("package", type=Path, nargs="?", default=PACKAGE, help="folder of the package")
    package = parser.parse_args(arguments).package.resolve()
    print("\n".join(describe(package)))
    broken = broken_rules(package)
    for line in broken:
        print(f"broken: {line}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
