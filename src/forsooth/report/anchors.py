"""Names of models, methods and panels as names of files and as ids on the page: they come from strangers' runs."""

import hashlib
import re

UNSAFE = re.compile(r"[^\w .,()=+-]", re.ASCII)  # in the name of a file
LONGEST = 150  # characters of such a name; file systems take 255 bytes


def safe_name(name: str) -> str:
    """The name of a drawing as that of a file in its folder.

    What is no plain name gets a hash of the whole, so that two names never share a file.

    >>> safe_name("boxes_emd"), safe_name("../x")
    ('boxes_emd', '_x-d6b96a97')
    """
    return _plain(name, UNSAFE.sub("_", name).lstrip(".")[:LONGEST])


def anchor(name: str) -> str:
    """The name as a part of an id, without what ids and links must not have.

    >>> anchor("RIGID-CORR-CNN"), anchor("whole image"), anchor("my.package:method")
    ('RIGID-CORR-CNN', 'whole_image-cce1a47d', 'my.package_method-28fc0e17')
    """
    return _plain(name, re.sub(r"[^\w.-]", "_", name, flags=re.ASCII)[:LONGEST])


def _plain(name: str, plain: str) -> str:
    """The plain form where it is the name itself, else with a hash of the whole."""
    if plain == name:
        return name
    return f"{plain}-{hashlib.sha256(name.encode(errors='replace')).hexdigest()[:8]}"
