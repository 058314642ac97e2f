# SPDX-License-Identifier: Apache-2.0
"""Plots as plain SVG: bars of the contests, lines of the capture cost."""

STYLE = "font-family='sans-serif' font-size='12' fill='#333'"


def document(width, height, parts):
    return (f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' "
            f"width='{width}' height='{height}'>\n<rect width='100%' height='100%' fill='white'/>\n"
            + "\n".join(parts) + "\n</svg>\n")


def text(x, y, content, anchor="start", size=12):
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}' {STYLE} " \
           f"style='font-size:{size}px'>{content}</text>"


def contest(results, title, unit, what):
    """Time per step; a line where the machine's peak would be."""
    left, bar, wide = 190, 20, 520
    longest = max(row["us"][1] for result in results for row in result["rows"])
    scale, in_unit = wide / longest, {"us": 1, "ms": 1e-3}[unit]
    parts, y = [text(10, 22, f"{title}: {unit} per {what}", size=14)], 40

    def figure(us):
        return f"{us * in_unit:.{0 if us * in_unit >= 100 else 1 if us * in_unit >= 10 else 3}f}"

    for result in results:
        y += 16
        parts.append(text(10, y, f"{result['threads']} thread(s)"))
        y += 8
        top = y
        for row in result["rows"]:
            low, middle, high = (v * scale for v in row["us"])
            color = "#2563eb" if row["name"].startswith("xla") else "#9ca3af"
            parts.append(text(left - 8, y + 14, row["name"], "end"))
            parts.append(f"<rect x='{left}' y='{y + 2}' width='{middle:.1f}' height='{bar - 4}' "
                         f"fill='{color}'/>")
            parts.append(f"<line x1='{left + low:.1f}' x2='{left + min(high, wide):.1f}' "
                         f"y1='{y + bar / 2}' y2='{y + bar / 2}' stroke='#111'/>")
            parts.append(text(left + max(middle, min(high, wide)) + 6, y + 14,
                              f"{figure(row['us'][1])}  (x{row['ratio'][1]:.2f})"))
            y += bar
        if result["us_at_peak"]:
            at = left + result["us_at_peak"] * scale
            parts.append(f"<line x1='{at:.1f}' x2='{at:.1f}' y1='{top}' y2='{y}' stroke='#dc2626' "
                         "stroke-dasharray='4 3'/>")
            parts.append(text(at, y + 12, f"at peak {figure(result['us_at_peak'])}", "middle", 10))
        y += 20
    return document(left + wide + 110, y + 10, parts)


def bars(title, rows):
    """One bar for each (name, value)."""
    left, bar, wide = 190, 20, 520
    longest = max(value for _, value in rows)
    parts, y = [text(10, 22, title, size=14)], 40
    for name, value in rows:
        color = "#2563eb" if name.startswith("xla") else "#9ca3af"
        parts.append(text(left - 8, y + 14, name, "end"))
        parts.append(f"<rect x='{left}' y='{y + 2}' width='{wide * value / longest:.1f}' "
                     f"height='{bar - 4}' fill='{color}'/>")
        parts.append(text(left + wide * value / longest + 6, y + 14, f"{value:.1f}"))
        y += bar
    return document(left + wide + 110, y + 10, parts)


def capture(results, beyond, blocks, level):
    """Processor seconds beyond the include by blocks, one line for each compiler."""
    left, top, wide, high = 60, 40, 480, 240
    lines = [[beyond(result, level, n)[1] for n in blocks] for result in results]
    most = max(max(line) for line in lines) * 1.1
    colors = ["#2563eb", "#d97706", "#059669"]
    parts = [text(10, 22, f"Compiling the step of a residual net ({level}): processor seconds "
                  "beyond the include", size=14)]
    place = lambda n, s: (left + wide * n / blocks[-1], top + high * (1 - s / most))
    parts.append(f"<path d='M{left} {top}V{top + high}H{left + wide}' stroke='#333' fill='none'/>")
    for n in blocks:
        x, _ = place(n, 0)
        parts.append(text(x, top + high + 16, n, "middle"))
    for i in range(5):
        _, y = place(0, most * i / 4)
        parts.append(text(left - 6, y + 4, f"{most * i / 4:.1f}", "end"))
    parts.append(text(left + wide / 2, top + high + 34, "blocks of two layers", "middle"))
    for result, line, color in zip(results, lines, colors):
        points = [place(n, s) for n, s in zip(blocks, line)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        parts.append(f"<polyline points='{path}' fill='none' stroke='{color}' stroke-width='2'/>")
        parts += [f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3' fill='{color}'/>" for x, y in points]
        name = result["compiler"].split("(")[0].strip() if "clang" not in result["compiler"] \
            else "clang++"
        parts.append(text(points[-1][0] + 8, points[-1][1] + 4, name))
    return document(left + wide + 90, top + high + 50, parts)
