#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""charts.py RESULTS OUTPUT: the page of a run of the benchmarks, report.html: the machine, a roofline chart, bars of our
time by each peer's, and the table. RESULTS is the results.json of report.py. The pictures need matplotlib (peers.sh
installs it); without it the page has the table alone, and says so.
"""
import html
import io
import json
import pathlib
import sys

sys.dont_write_bytecode = True  # no __pycache__ beside the sources
import report  # noqa: E402

try:
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plot
except ImportError:
    plot = None

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1100px; padding: 0 1em; color: #222; }
table { border-collapse: collapse; font-size: 13px; } td, th { padding: 2px 9px; border-bottom: 1px solid #ddd; }
td.n { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } th { text-align: left; }
td.better { color: #06693a; } td.worse { color: #a11; } svg { max-width: 100%; height: auto; }
"""
BETTER, WORSE = "#2a8c5a", "#c0504d"


def picture(figure) -> str:
    text = io.StringIO()
    figure.savefig(text, format="svg", bbox_inches="tight")
    plot.close(figure)
    return text.getvalue()[text.getvalue().index("<svg"):]


def roofline(rows, roofs) -> str:
    """Operations a second by operations a byte, under what the machine allows."""
    points = [row for row in rows if row.get("flops") and row.get("bytes") and row["ours_ms"]]
    if not points or not roofs:
        return ""
    figure, axes = plot.subplots(figsize=(10, 6))
    peak = roofs["flops"] / 1e9
    intensity = [row["flops"] / row["bytes"] for row in points]
    low, high = min(intensity + [0.1]) / 2, max(intensity + [100]) * 2
    for level, style in zip(roofs["levels"], ("-", "--", "-.", ":")):
        speed = level["bandwidth"] / 1e9
        axes.plot([low, peak / speed, high], [low * speed, peak, peak], style, color="#555", linewidth=1,
                  label=f"{level['name']}, {speed:.0f} GB/s")
    axes.text(high, peak * 1.05, f"{peak:.0f} GFLOP/s", ha="right", color="#555")
    names = list(dict.fromkeys(row["bench"] for row in points))
    for name, colour in zip(names, plot.rcParams["axes.prop_cycle"].by_key()["color"] * 3):
        mine = {row["case"]: row for row in points if row["bench"] == name}  # a row a peer, the same work
        axes.scatter([row["flops"] / row["bytes"] for row in mine.values()],
                     [row["flops"] / row["ours_ms"] / 1e6 for row in mine.values()], s=22, color=colour, label=name)
    axes.set(xscale="log", yscale="log", xlim=(low, high), xlabel="operations a byte that must move",
             ylabel="GFLOP/s, one thread")
    axes.legend(fontsize=8, loc="lower right")
    axes.grid(True, which="major", linewidth=0.3)
    return picture(figure)


def bars(title: str, rows) -> str:
    """Our time by the peer's, a bar a row; those shorter than the line are faster."""
    figure, axes = plot.subplots(figsize=(10, 0.9 + 0.24 * len(rows)))
    labels = [row["case"] for row in rows]
    ratios = [row["ratio"] for row in rows]
    places = range(len(rows))
    # From 1, so that half and twice are equally long.
    axes.barh(places, [ratio - 1 for ratio in ratios], left=1, height=0.7,
              color=[BETTER if ratio <= 1 else WORSE for ratio in ratios])
    for place, ratio in zip(places, ratios):
        axes.annotate(f"{ratio:.2f}", (ratio, place), xytext=(3 if ratio > 1 else -3, 0), textcoords="offset points",
                      va="center", ha="left" if ratio > 1 else "right", fontsize=8)
    axes.axvline(1, color="#222", linewidth=1)
    axes.set_yticks(list(places), labels, fontsize=8)
    axes.invert_yaxis()
    low, high = min(ratios + [0.5]), max(ratios + [2])
    axes.set(xscale="log", xlim=(low / 1.35, high * 1.35), xlabel="our time by the peer's, logarithmic")
    ticks = [t for t in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if low / 1.35 <= t <= high * 1.35]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_title(title, loc="left", fontsize=11)
    return picture(figure)


def table(rows) -> str:
    lines = ["<tr><th>bench<th>case<th>ours<th>peer<th>peer's<th>ratio<th>roof<th>error<th>note</tr>"]
    for row in rows:
        kind = "" if row["ratio"] is None else " better" if row["ratio"] <= 1 else " worse"
        cells = [("", row["bench"]), ("", row["case"]), ("n", report.time(row["ours_ms"])),
                 ("", row["peer"] or "missing"), ("n", report.time(row["peer_ms"])),
                 ("n" + kind, report.number(row["ratio"], ".2f")), ("n", report.number(row["roof"], ".0%")),
                 ("n", report.number(row["error"], ".1g")), ("", row.get("note") or "")]
        lines.append("<tr>" + "".join(f'<td class="{c}">{html.escape(text)}</td>' for c, text in cells) + "</tr>")
    return "<table>" + "\n".join(lines) + "</table>"


def page(results) -> str:
    rows, roofs = results["rows"], results["roofs"]
    parts = [f"<h1>dfdx, benchmarks</h1><p>{html.escape(results['machine'])}</p>"]
    if roofs:
        levels = "; ".join(f"{level['name']} {level['bandwidth'] / 1e9:.0f} GB/s" for level in roofs["levels"])
        parts.append(f"<p>One thread reaches {roofs['flops'] / 1e9:.0f} GFLOP/s in independent multiply-adds of floats, "
                     f"and reads {levels}.</p>")
    means = "<br>".join(html.escape(line) for line in report.means(rows).splitlines())
    if plot is None:
        parts.append("<p>Without pictures: there is no matplotlib here.</p>")
    else:
        plot.rcParams["svg.fonttype"] = "none"
        chart = roofline(rows, roofs)
        if chart:
            parts.append(f"<h2>Roofline</h2>{chart}")
        parts.append("<h2>Our time by the peer's</h2>")
        compared = [row for row in rows if row["ratio"]]
        for bench, peer in dict.fromkeys((row["bench"], row["peer"]) for row in compared):
            mine = [row for row in compared if (row["bench"], row["peer"]) == (bench, peer)]
            parts.append(bars(f"{bench}, ours by {peer}", mine))
    parts.append(f"<h2>Means</h2><p>{means}</p><h2>All rows</h2>{table(rows)}")
    return ('<!doctype html><html lang="en"><meta charset="utf-8"><title>dfdx, benchmarks</title>'
            f"<style>{STYLE}</style>{''.join(parts)}</html>\n")


def main(results: str, output: str) -> None:
    pathlib.Path(output).write_text(page(json.loads(pathlib.Path(results).read_text("utf-8"))), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
