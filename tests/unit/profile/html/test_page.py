"""The whole page: well formed, from nowhere but itself, and readable by those who can't see it."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from tests.helpers.launches import CHIP, LINES, report, work
from va100.profile.html.page import page
from va100.profile.launch import launches_of
from va100.profile.metrics import chosen
from va100.profile.report_schema import LineCounters, ReportFault

VOID = {"meta", "br"}


class Tree(HTMLParser):
    """Reads a page, and sees to it that what is opened is closed."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.said = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.said.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.said).split())

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]


FULL = report(
    work(),
    work(kernel="_Z3mulILi4EEvPf", duration_s=3e-6, bound_by="FMA pipe"),
    work(),
    work(kernel="a<b>&c", counters={"sampled_fraction": 0.0}, lines=(), parts={"launch": 1e-6}),
)


def made(full=FULL, metrics=("dram__bytes.sum",)):
    return page(full, launches_of(full), chosen(metrics), CHIP)


@pytest.fixture(scope="module")
def tree():
    return Tree(made())


def test_nothing_comes_from_outside():
    text = made()
    assert not re.search(r"https?:|//[a-z]|@import|url\(|<script|<link|<img|<iframe| src=", text)


def test_links_lead_to_kernels_that_are_there(tree):
    ids = [attributes["id"] for _, attributes in tree.tags if "id" in attributes]
    assert len(ids) == len(set(ids)) == 3
    assert {a["href"] for a in tree.all("a")} == {f"#{i}" for i in ids}


def test_every_chart_says_in_words_what_it_shows():
    for chart in re.findall(r"<svg.*?</svg>", made(), re.DOTALL):
        assert re.match(r'<svg [^>]*role="img"[^>]*><title>[^<]{10,}</title>', chart)


def test_headings_and_language(tree):
    assert tree.all("html") == [{"lang": "en"}]
    assert len(tree.all("h1")) == 1
    assert all("scope" in attributes for attributes in tree.all("th"))


def test_what_it_tells(tree):
    for text in (
        "DRAM-bound: 77% of 2,039 GB/s", "the longest of 2 launches", "saxpy.cu:12", "12582912",
        "2 mJ, 250 W at 1410 MHz", "77%",
    ):  # fmt: skip
        assert text in tree.text


def test_names_are_escaped_once(tree):
    assert "a<b>&c" in tree.text
    assert "a&lt;b&gt;&amp;c" in made()
    assert "&amp;lt;" not in made()


def test_the_longest_kernel_comes_first(tree):
    rows = re.findall(r'<tr><td class="number">(\d)</td><th scope="row"><a[^>]*>([^<]*)', made())
    assert [name for _, name in rows] == ["saxpy", "a&lt;b&gt;&amp;c", "mul&lt;4&gt;"]


def test_faults_and_notes_are_told():
    from dataclasses import replace

    full = replace(FULL, faults=(ReportFault(text="illegal address"),), notes=("cut short",))
    text = Tree(made(full)).text
    assert "fault: illegal address" in text
    assert "cut short" in text


def test_a_program_without_launches():
    assert "No kernel was launched." in Tree(made(report(copies=False))).text


def test_source_text_is_read_where_the_file_is(tmp_path):
    source = tmp_path / "k.cu"
    source.write_text("first\n  y[i] = a < b;\n")
    line = LineCounters(file=str(source), line=2, counters=LINES[1].counters)
    text = made(report(work(lines=(line,))))
    assert "y[i] = a &lt; b;" in text
    gone = LineCounters(file=str(tmp_path / "none.cu"), line=2, counters=LINES[1].counters)
    assert "none.cu:2" in made(report(work(lines=(gone,))))


def test_columns_are_there_where_something_was_counted():
    plain = made()
    assert "sectors a request" in plain
    assert "L1 hits" not in plain
    hits = LINES[1].counters | {"l1_hit_sectors": 65536.0, "l1_load_sectors": 262144.0}
    line = LineCounters(file="/src/saxpy.cu", line=12, counters=hits)
    shown = made(report(work(lines=(line,))))
    assert "L1 hits" in shown
    assert '<td class="number">25%</td>' in shown


def test_lines_of_ptx_say_how_to_get_the_sources():
    line = LineCounters(file="", line=7, text="ret;", counters=LINES[0].counters)
    assert "-lineinfo gives those of the source" in made(report(work(lines=(line,))))
    assert "-lineinfo" not in made(report(work()))


def test_many_kernels_are_all_in_the_table():
    full = report(*(work(kernel=f"k{i}", duration_s=1e-6 * (i + 1)) for i in range(45)))
    tree = Tree(made(full, ()))
    assert len([a for _, a in tree.tags if a.get("class") == "kernel"]) == 40
    assert "5 more kernels are in the table only." in tree.text
    assert "k0 864" in tree.text
