"""Files of documents, odd ones too, to token ids; what was cut, mended or left out is counted."""

import gzip
import io
import tracemalloc
import zipfile

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from forsooth.datasets.texts import (
    PADDING,
    UNKNOWN,
    decode,
    documents,
    encode,
    generated,
    tokenise,
    vocabulary,
    word_vectors,
)
from forsooth.records import UsageError


def written(folder, name, content):
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def test_tokens_by_hand():
    assert tokenise("It's a well-known tale, isn’t it?  (9/10)") == (
        ["it's", "a", "well-known", "tale", ",", "isn’t", "it", "?", "(", "9", "/", "10", ")"]
    )
    assert tokenise("The THE the -a- a- _x") == ["the", "the", "the", "-", "a", "-", "a", "-", "_", "x"]
    assert tokenise(" \t\n ") == []


@settings(deadline=None)
@given(st.text())
def test_nothing_but_white_space_is_lost_and_tokens_are_stable(text):
    tokens = tokenise(text)
    assert "".join(tokens) == "".join(text.lower().split())
    assert tokenise(" ".join(tokens)) == tokens


def test_one_document_a_line(tmp_path):
    read = documents(written(tmp_path, "mine.txt", 'The first.\r\n\n  \nA second, "quoted".\nthird\tline\n'))
    assert read.texts == ("The first.", 'A second, "quoted".', "third\tline")
    assert read.name == "mine"
    assert read.facts == {"documents": 5, "empty": 2, "undecodable_bytes": 0}


@pytest.mark.parametrize("name", ["r.tsv", "r.tsv.gz"])
def test_a_tab_separated_table_has_no_quoting(tmp_path, name):
    read = documents(written(tmp_path, name, 'id\ttext\n1\t"An odd quote\n2\t\n3\tNA\n'))
    assert read.texts == ('"An odd quote', "NA")
    assert read.facts["empty"] == 1


def test_a_comma_separated_table_has_quoting(tmp_path):
    read = documents(written(tmp_path, "r.csv", 'Text,label\n"one, the ""first""\nstill first",0\ntwo,1\n'))
    assert read.texts == ('one, the "first"\nstill first', "two")


def test_bytes_that_are_not_utf8_are_replaced_and_counted(tmp_path):
    content = b"caf\xe9 \xff\xfe the end\n" + "日本語 の the\n\ufffd\n".encode()
    read = documents(written(tmp_path, "odd.txt", content))
    assert read.facts["undecodable_bytes"] == 3  # the sign of the last line was there before
    assert read.texts[0] == "caf\ufffd \ufffd\ufffd the end"
    words = vocabulary([tokenise(text) for text in read.texts], cap=100)
    ids, facts = encode([tokenise(text) for text in read.texts], words, length=9)
    assert facts["unknown_tokens"] == 4
    assert decode(ids[1], words) == ["日本語", "の", "the"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("none.txt", "", "`data` must hold documents, but there is no line with a word"),
        ("blank.txt", "\n \n", "there is no line with a word"),
        ("r.tsv", "a\tb\n1\t2\n", "`data` must have a column `text`, got a, b"),
        ("r.tsv", "", "cannot be read as one"),
        ("r.csv", "text,b\nx,y,z,w\n", "cannot be read as one"),
        ("b.txt", b"a line\n\0\1\2 and bytes", "`data` must be text, but .* holds zero bytes"),
    ],
)
def test_files_without_documents_are_refused(tmp_path, name, content, message):
    with pytest.raises(UsageError, match=message):
        documents(written(tmp_path, name, content))


@pytest.mark.parametrize("kind", ["utf-8", "utf-8-sig", "utf-16"])
def test_files_of_other_encodings_that_say_so_are_read(tmp_path, kind):
    found = documents(written(tmp_path, "r.txt", "the cät\r\na dog\r\n".encode(kind)))
    assert found.texts == ("the cät", "a dog") and not found.facts["undecodable_bytes"]


def test_files_that_are_not_there_or_damaged_are_refused(tmp_path):
    with pytest.raises(UsageError, match="no file at"):
        documents(tmp_path / "nothing.txt")
    (tmp_path / "bad.tsv.gz").write_bytes(gzip.compress(b"text\nhello\n" * 50)[:30])
    with pytest.raises(UsageError, match=r"bad\.tsv\.gz cannot be read"):
        documents(tmp_path / "bad.tsv.gz")


@pytest.mark.parametrize("name", ["bomb.txt.gz", "bomb.txt"])
def test_a_text_that_is_too_large_is_refused_before_it_is_unpacked(tmp_path, monkeypatch, name):
    monkeypatch.setattr("forsooth.datasets.texts.LARGEST", 2**20)
    path = written(tmp_path, name, b"word " * 2**21)
    tracemalloc.start()
    with pytest.raises(
        UsageError, match=r"`data` must be a readable file, but .*bomb\.txt.*at most 1 MiB after unpacking"
    ):
        documents(path)
    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()


def test_vectors_that_are_too_large_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "v.npz", words=np.array(["a"]), vectors=np.zeros((1, 2**20), dtype=np.float32))
    assert word_vectors(tmp_path / "v.npz", ("", "?", "a"), seed=0)[1] == 1
    monkeypatch.setattr("forsooth.datasets.texts.LARGEST_VECTORS", 2**20)
    with pytest.raises(UsageError, match=r"`vectors` must be an \.npz with .*v\.npz.* at most 1 MiB are unpacked"):
        word_vectors(tmp_path / "v.npz", ("", "?", "a"), seed=0)


def test_vectors_whose_header_lies_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "v.npz", "w") as archive:
        for name in ("words", "vectors"):
            header = io.BytesIO()
            np.lib.format.write_array_header_1_0(header, {"descr": "<f4", "fortran_order": False, "shape": (2**50,)})
            archive.writestr(f"{name}.npy", header.getvalue())
    with pytest.raises(UsageError, match=r"`vectors` must be an \.npz"):
        word_vectors(tmp_path / "v.npz", ("", "?", "a"), seed=0)


def test_vocabulary_by_hand():
    tokens = [["b", "c", "b"], ["c", "d", "the", "\ufffd"]]
    assert vocabulary(tokens, cap=10, first=("a", "the")) == ("", "\ufffd", "a", "the", "b", "c", "d")
    assert vocabulary(tokens, cap=5, first=("a", "the")) == ("", "\ufffd", "a", "the", "b")
    with pytest.raises(UsageError, match="`cap` must be at least 4, got 3"):
        vocabulary(tokens, cap=3, first=("a", "the"))


def test_encoding_cuts_pads_and_counts():
    words = ("", "\ufffd", "a", "b")
    ids, facts = encode([["a", "b", "x"], [], ["b"] * 10_000], words, length=4)
    assert ids.tolist() == [[2, 3, UNKNOWN, PADDING], [PADDING] * 4, [3, 3, 3, 3]]
    assert ids.dtype == torch.int64
    assert facts == {"length": 4, "truncated": 1, "tokens_cut": 9996, "tokens": 7, "unknown_tokens": 1}
    assert encode([[]], words, length=4)[0].tolist() == [[PADDING]]
    with pytest.raises(UsageError, match="`length` must be at least 1, got 0"):
        encode([], words, length=0)


@settings(deadline=None)
@given(st.lists(st.lists(st.sampled_from(["a", "b", "c", ",", "the"]), max_size=8), min_size=1, max_size=5))
def test_known_tokens_come_back(tokens):
    words = vocabulary(tokens, cap=50)
    ids, _ = encode(tokens, words, length=8)
    assert [decode(row, words) for row in ids] == tokens


def test_word_vectors(tmp_path):
    path = tmp_path / "v.npz"
    np.savez(path, words=np.array(["b", "the"]), vectors=np.array([[1, 2], [3, 4]], dtype=np.float16))
    table, found = word_vectors(path, ("", "\ufffd", "a", "the", "b"), seed=0)
    assert found == 2
    assert table[0].tolist() == [0, 0]
    assert table[3:].tolist() == [[3, 4], [1, 2]]
    assert ((table[1:3].abs() <= 0.05) & (table[1:3] != 0)).all()
    assert torch.equal(table, word_vectors(path, ("", "\ufffd", "a", "the", "b"), seed=0)[0])


def test_word_vectors_that_cannot_be_used(tmp_path):
    (tmp_path / "v.npz").write_bytes(b"no archive")
    with pytest.raises(UsageError, match=r"must be an \.npz with `words` and `vectors`"):
        word_vectors(tmp_path / "v.npz", ("",), seed=0)
    np.savez(tmp_path / "w.npz", words=np.array(["b"]), vectors=np.zeros((2, 3)))
    with pytest.raises(UsageError, match=r"for \(1,\) words, got \(2, 3\)"):
        word_vectors(tmp_path / "w.npz", ("",), seed=0)
    np.save(tmp_path / "a.npy", np.zeros(3))
    with pytest.raises(UsageError, match=r"a\.npy is none"):
        word_vectors(tmp_path / "a.npy", ("",), seed=0)
    np.savez(tmp_path / "n.npz", words=np.array(["b"]), vectors=np.array([[np.nan]]))
    with pytest.raises(UsageError, match="holds nan or infinity"):
        word_vectors(tmp_path / "n.npz", ("", "?", "b"), seed=0)
    np.savez(tmp_path / "o.npz", words=np.array(["слово"]), vectors=np.ones((1, 2)))
    with pytest.raises(UsageError, match=r"none of the 1 in .*o\.npz is there"):
        word_vectors(tmp_path / "o.npz", ("", "?", "b"), seed=0)


def test_generated_documents():
    made = generated(3, seed=1)
    assert made.name == "grammar"
    assert len(made.texts) == made.facts["documents"] == 3
