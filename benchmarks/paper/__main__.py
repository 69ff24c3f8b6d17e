"""Regenerate the paper's figures and tables, and docs/paper.md.

    python -m benchmarks.paper                    # 3 repeats of everything that is not stored yet (an hour or two)
    python -m benchmarks.paper --seeds 10         # the paper's ten; stored runs are not made again
    python -m benchmarks.paper --quick            # 1 repeat, reduced grids, no slow methods: under 20 minutes
    python -m benchmarks.paper --only theory      # some experiments
    python -m benchmarks.paper --page             # only write pictures and page from what is stored

Rows go to benchmarks/results/paper/ at once, so a study that was stopped goes on where it was. Pictures and page show
all rows that are stored, whatever this call has added; the page says how many repeats each line stands for.
"""

import argparse
from pathlib import Path

from benchmarks.paper import (
    anova,
    dimensions,
    errors,
    figure1,
    figure2,
    generator,
    page,
    picks,
    posteriors,
    quadratures,
    real,
    supersamples,
    tables,
    theory,
)
from benchmarks.study import read, run_all

EXPERIMENTS = [
    m.EXPERIMENT
    for m in (
        figure1,
        picks,
        figure2,
        posteriors,
        real,
        generator,
        tables,
        dimensions,
        quadratures,
        anova,
        theory,
        supersamples,
        errors,
    )
]
RESULTS, PICTURES, PAGE = Path("benchmarks/results/paper"), Path("docs/pictures"), Path("docs/paper.md")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1 repeat, reduced grids, no slow methods")
    parser.add_argument("--seeds", type=int, help="repeats (3; 1 with --quick)")
    parser.add_argument("--only", nargs="+", choices=[e.name for e in EXPERIMENTS], help="some experiments")
    parser.add_argument("--page", action="store_true", help="run nothing")
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time; seconds are the processor's")
    options = parser.parse_args()
    seeds = options.seeds or (1 if options.quick else 3)
    for experiment in EXPERIMENTS:
        path, wanted = RESULTS / f"{experiment.name}.csv", not options.only or experiment.name in options.only
        todo = experiment.tasks(seeds, options.quick) if wanted and not options.page else []
        if todo:
            print(experiment.name, flush=True)
            run_all(experiment.work, todo, path, jobs=options.jobs, restart=False)
    sections = {}
    for experiment in EXPERIMENTS:
        rows = read(RESULTS / f"{experiment.name}.csv")
        if rows or experiment is real.EXPERIMENT:
            sections[experiment.name] = experiment.section(rows)
        if rows and experiment.draw:
            experiment.draw(rows).savefig(PICTURES / f"paper-{experiment.name}.png", dpi=110)
    PAGE.write_text(page.written(sections), encoding="utf-8")
    print(f"{PAGE}, {len(sections)} experiments")


if __name__ == "__main__":
    main()
