"""What a result writes never takes the place of a store, of another database or of code."""

import shutil

import pytest

import basq
from basq.errors import InputError
from helpers.small import gauss, infer


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A result and its store."""
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    return infer(gauss, max_evals=24, store=path), path


@pytest.fixture
def files(run, tmp_path):
    shutil.copy(run[1], tmp_path / "run.sqlite")
    for name in ("samples.txt", "samples.ranges", "samples.properties.ini"):
        shutil.copy(run[1], tmp_path / name)
    (tmp_path / "model.py").write_text("x = 1\n")
    return tmp_path


@pytest.mark.parametrize("name", ["run.sqlite", "model.py"])
@pytest.mark.parametrize("verb", ["save", "report"])
def test_files_and_pages(run, files, verb, name):
    before = (files / name).read_bytes()
    with pytest.raises(InputError, match=f"The output would be written over .*{name}, which "):
        getattr(run[0], verb)(files / name)
    assert (files / name).read_bytes() == before
    assert sorted(path.name for path in files.iterdir() if path.name.startswith(".")) == []


@pytest.mark.parametrize("end", ["txt", "ranges", "properties.ini"])
def test_chain_files(run, files, end):
    pytest.importorskip("getdist")
    root = files / "samples"
    for other in {"txt", "ranges", "properties.ini"} - {end}:
        (files / f"samples.{other}").unlink()
    before = sorted((path.name, path.read_bytes()) for path in files.iterdir())
    with pytest.raises(InputError, match=f"samples.{end}, which is a store of basq"):
        run[0].to_getdist(root)
    assert sorted((path.name, path.read_bytes()) for path in files.iterdir()) == before


def test_a_saved_result_is_replaced_by_another_and_by_nothing_else(run, tmp_path):
    path = tmp_path / "saved"
    run[0].save(path)
    run[0].save(path)
    with pytest.raises(InputError, match="which is a saved result"):
        run[0].report(path)
    assert basq.Result.load(path).log_evidence == run[0].log_evidence


@pytest.mark.parametrize("verb", ["save", "report"])
def test_places_where_no_file_can_be_written(run, tmp_path, verb):
    with pytest.raises(InputError, match=f"{verb}.*: there is no directory .*no-such"):
        getattr(run[0], verb)(tmp_path / "no-such" / "result")
    with pytest.raises(InputError, match="this is a directory"):
        getattr(run[0], verb)(tmp_path)
