# SPDX-License-Identifier: Apache-2.0
"""Lists the public names of PyTorch/XLA as pytorch_xla_names.json: python3 pytorch_xla_names.py [--write]

By hand, with network: pip brings the wheels of torch_xla 2.9.0 and torch-tpu 0.2.0, and their sources are read, not run.
Ends with 1 where the list differs from them; --write writes it again."""
import ast
import json
import pathlib
import subprocess
import sys
import tempfile
import zipfile

LIST = pathlib.Path(__file__).parent / "pytorch_xla_names.json"
WHEELS = {"torch_xla": ("torch_xla==2.9.0", "3.12"), "torch_tpu": ("torch-tpu==0.2.0", "3.12")}
# What the package's own tests use.
EXCEPT = {"torch_xla.test.test_utils", "torch_xla.utils.stablehlo_test_utils"}


def sources(package):
    """Module's name -> tree and whether it is a package, of a wheel."""
    requirement, python = WHEELS[package]
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:",
                        "--python-version", python, "--dest", folder, requirement], check=True)
        wheel, = pathlib.Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as files:
            for path in files.namelist():
                if path.startswith(package + "/") and path.endswith(".py"):
                    parts = path.removesuffix(".py").split("/")
                    is_package = parts[-1] == "__init__"
                    yield ".".join(parts[:-1] if is_package else parts), (ast.parse(files.read(path)), is_package)


def statements(body):
    """Those of a module, also below its if and try."""
    for one in body:
        if isinstance(one, (ast.If, ast.Try)):
            yield from statements(one.body)
            yield from statements(one.orelse)
        else:
            yield one


def kind_of(one):
    """A function with its arguments, a class with its constructor's."""
    if isinstance(one, ast.ClassDef):
        inits = [f for f in one.body if isinstance(f, ast.FunctionDef) and f.name == "__init__"]
        arguments = ast.unparse(plain(inits[0].args)) if inits else ""
        return f"class({arguments.removeprefix('self').removeprefix(', ')})"
    return f"function({ast.unparse(plain(one.args))})"


def plain(arguments):
    """Without annotations."""
    for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]:
        if a:
            a.annotation = None
    return arguments


def defined(tree):
    """What a module defines, and __all__ where it is a plain list."""
    names, listed = {}, None
    for one in statements(tree.body):
        if isinstance(one, (ast.FunctionDef, ast.ClassDef)):
            names[one.name] = kind_of(one)
        elif isinstance(one, ast.Assign):
            for target in one.targets:
                if isinstance(target, ast.Name) and target.id == "__all__":
                    listed = ast.literal_eval(one.value)
                elif isinstance(target, ast.Name) and not ast.unparse(one.value).startswith(("TypeVar(", "logging.")):
                    names.setdefault(target.id, "value")
    return names, listed


def imported(tree, module):
    """Name -> module and name there, of the package's own public modules."""
    root = module.split(".")[0]
    for one in statements(tree.body):
        if isinstance(one, ast.ImportFrom):
            if one.level:
                base = module.split(".")[:len(module.split(".")) - one.level + 1]
                source = ".".join(base + ([one.module] if one.module else []))
            else:
                source = one.module
            if source.split(".")[0] == root and "._" not in source:
                for a in one.names:
                    yield a.asname or a.name, (source, a.name)


def torch_xla():
    """Public modules' own names; what a package takes from a module stands with the package alone."""
    modules = {m: of for m, of in sources("torch_xla") if "._" not in m and m not in EXCEPT}
    own = {m: defined(tree) for m, (tree, _) in modules.items()}
    result = {m: {n: k for n, k in names.items() if not n.startswith("_") and (listed is None or n in listed)}
              for m, (names, listed) in own.items()}
    for module, (tree, is_package) in modules.items():
        if not is_package:
            continue
        for name, (source, there) in imported(tree, module):
            found = own.get(source, ({}, None))[0]
            if there == "*":
                result[module].update(result.pop(source))
            elif there in found and not name.startswith("_"):
                result[module][name] = found[there]
                result[source].pop(there, None)
    return result


def torch_tpu():
    """What torch_tpu._internal.public_api puts below torch.tpu."""
    modules = dict(sources("torch_tpu"))
    tree, _ = modules["torch_tpu._internal.public_api"]
    table, = [s.value for s in tree.body if isinstance(s, ast.AnnAssign) and s.target.id == "_PUBLIC_MODULES"]
    targets = {n.targets[0].id if isinstance(n, ast.Assign) else n.target.id: n.value
               for n in tree.body if isinstance(n, (ast.Assign, ast.AnnAssign))}
    result = {}
    for key, spec in zip(table.keys, table.values):
        exports = next((k.value for k in spec.keywords if k.arg == "exports"), None)
        names = result[key.value] = {}
        for name, target in zip(exports.keys, exports.values):
            names[name.value] = tpu_kind(target, modules, targets)
    return result


def text_of(expression, values):
    """A string, with the names of the module and its _tpu_attr() put in."""
    if isinstance(expression, ast.Call):
        return text_of(values["_TPU_DEVICE_CLASS"], values) + "." + expression.args[0].value
    if isinstance(expression, ast.JoinedStr):
        return "".join(p.value if isinstance(p, ast.Constant) else text_of(values[p.value.id], values)
                       for p in expression.values)
    return expression.value


def tpu_kind(target, modules, values):
    if isinstance(target, ast.Call) and target.func.id == "Property":
        return "property"
    module, path = text_of(target, values).split(":")
    scope = modules[module][0].body
    for name in path.split("."):
        everywhere = [s for c in modules[module][0].body if isinstance(c, ast.ClassDef) for s in c.body]  # a base has it
        found = [s for s in [*everywhere, *statements(scope)]
                 if isinstance(s, (ast.FunctionDef, ast.ClassDef)) and s.name == name]
        if not found:
            return "value"
        scope = found[-1].body
    return kind_of(found[-1])


def main():
    packages = {"torch_xla": torch_xla, "torch_tpu": torch_tpu}
    text = json.dumps({p: {"version": WHEELS[p][0].split("==")[1],
                           "modules": {m: dict(sorted(n.items())) for m, n in sorted(names().items()) if n}}
                       for p, names in packages.items()}, indent=1) + "\n"
    if "--write" in sys.argv[1:]:
        LIST.write_text(text)
    elif LIST.read_text() != text:
        sys.exit("pytorch_xla_names.json is not what the wheels have: --write")


if __name__ == "__main__":
    main()
