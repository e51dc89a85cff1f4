"""A page as a reader finds it."""

import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """The tags of a page, and its text without style and script."""

    def __init__(self, text):
        super().__init__()
        self.source, self.tags, self.words, self._inside = text, [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag):  # noqa: ARG002 - the name is HTMLParser's
        self._inside = None

    def handle_data(self, data):
        if self._inside not in ("style", "script"):
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    @property
    def headings(self):
        return re.findall(r"<h2[^>]*>(.*?)</h2>", self.source)

    def all(self, tag, **attributes):
        wanted = {name.rstrip("_"): value for name, value in attributes.items()}
        return [found for name, found in self.tags if name == tag and wanted.items() <= found.items()]
