"""A browser for the tests of pages, and questions that are put to a page in it."""

import shutil
from dataclasses import dataclass

import pytest

NAMES = ("chromium-headless-shell", "chromium", "google-chrome")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
"""A Chromium: `scripts/browser.sh` installs one where apt-get may be used."""
PHONE, DESK = {"width": 390, "height": 844}, {"width": 1280, "height": 900}
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
"""By how many pixels a page is too wide."""
UNREADABLE = """() => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const known = new Map();
  const parse = text => {
    if (!known.has(text)) {
      pen.clearRect(0, 0, 1, 1);
      pen.fillStyle = text;
      pen.fillRect(0, 0, 1, 1);
      known.set(text, [...pen.getImageData(0, 0, 1, 1).data]);
    }
    return known.get(text);
  };
  const over = ([r, g, b, a], under) =>
    [r, g, b].map((v, i) => (v * a + under[i] * (255 - a)) / 255).concat(255);
  const light = ([r, g, b]) => [r, g, b].map(v => v / 255)
    .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    if (!element) return [255, 255, 255, 255];
    const own = parse(getComputedStyle(element).backgroundColor);
    return own[3] === 255 ? own : over(own, behind(element.parentElement));
  };
  const poor = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let seen = 0;
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || ['TITLE', 'title', 'STYLE', 'style'].includes(element.tagName)) continue;
    if (!element.checkVisibility({opacityProperty: true, visibilityProperty: true})) continue;
    const box = element.getBoundingClientRect();
    if (box.right <= 0 || box.width * box.height === 0) continue;
    const style = getComputedStyle(element), svg = element.closest('svg');
    const page = behind(element), drawn = over(parse(svg ? style.fill : style.color), page);
    const ink = light(drawn), paper = light(page);
    const ratio = (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
    const size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    seen += 1;
    if (ratio < (large ? 3 : 4.5)) poor.push(`${text.slice(0, 30)}: ${ratio.toFixed(2)}`);
  }
  return {seen, poor};
}"""
"""The texts that can be seen, and those with too little contrast (WCAG 2.2, criterion 1.4.3)."""
FOCUSED = """() => {
  const element = document.activeElement, style = getComputedStyle(element);
  const box = element.getBoundingClientRect();
  return {
    name: (element.getAttribute('aria-label') || element.textContent || element.id).trim(),
    marked: style.outlineStyle !== 'none' || style.boxShadow !== 'none',
    seen: box.bottom > 0 && box.top < window.innerHeight && box.right > 0,
  };
}"""
"""The element with the focus: its text, whether a mark shows that, and whether it is in view."""
NAMED = {"link", "button", "searchbox", "textbox", "combobox", "image", "region", "table"}
"""Roles without a use unless a screen reader can say what they are."""


@dataclass(frozen=True)
class TreeNode:
    """A node of the tree that a screen reader reads."""

    role: str
    name: str
    level: int


def tree_of(page):
    """The nodes of a page's tree, in the order of reading."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    session.detach()
    return [_node(node) for node in nodes if not node["ignored"]]


def _node(node):
    properties = {each["name"]: each["value"].get("value") for each in node["properties"]}
    name = node.get("name", {}).get("value", "").strip()
    return TreeNode(node["role"]["value"], name, int(properties.get("level") or 0))


def unnamed(tree):
    """Roles of nodes that have no name and need one."""
    return [node.role for node in tree if node.role in NAMED and not node.name]


def levels(tree):
    """The levels of the headings, in the order of reading."""
    return [node.level for node in tree if node.role == "heading"]


def skips(tree):
    """Pairs of levels of headings that follow each other, but leave one out."""
    after = levels(tree)
    return [pair for pair in zip([0, *after], after, strict=False) if pair[1] > pair[0] + 1]


@pytest.fixture(scope="module")
def browser():
    """A Chromium without a page."""
    playwright = pytest.importorskip("playwright.sync_api")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()
