"""A hook of mkdocs: every notebook is a page of the site, its cells as text and code. Nothing is executed."""

import json
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Beside each notebook, which stays to be downloaded, its page."""
    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            content = as_markdown(json.loads(file.content_string), file.name)
            files.append(File.generated(config, file.src_uri.replace(".ipynb", ".md"), content=content))
    return files


def as_markdown(book: dict[str, Any], name: str) -> str:
    """The cells one below the other; below the title, where the notebook itself is."""
    title, *parts = [written(cell) for cell in book["cells"]]
    where = f"This page is a notebook: [download {name}.ipynb]({name}.ipynb) and run it to see what its cells show."
    return "\n\n".join([title, where, *parts]) + "\n"


def written(cell: dict[str, Any]) -> str:
    """A cell as Markdown."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "code":
        return f"```python\n{source}\n```"
    return source


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to notebooks lead to their pages here, and to the notebooks where the documents are read as files."""
    if page.file.src_uri.startswith("notebooks/"):
        return markdown
    return markdown.replace(".ipynb)", ".md)")
