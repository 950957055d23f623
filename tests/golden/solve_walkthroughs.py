#!/usr/bin/env python3
"""Solves for what two worked examples did not print, and writes it to solved.json. Standard library only.

Both examples print results of random numbers that they show in part: of first_principles Q, a quarter of K's first row,
scores, weights, most of both outputs, and mean, variance and deviation of Q, K and V; of scale_mask_softmax rounded
scores and what follows from them. Here each printed number is an interval, half a unit of its last digit to both sides;
unknowns start anywhere and are projected onto one interval after another (Kaczmarz) until all hold. Mean and variance
are printed to 17 digits: they are met to the last bit, by the same sum from first to last that attest uses.

Run in this folder after changing walkthroughs.json (about a minute), then make_walkthroughs.py. Both results are
committed, so that no test needs Python.
"""
import json
import math
import pathlib
import random

HERE = pathlib.Path(__file__).parent
INNER = 0.97  # the part of an interval that is aimed at: what it printed lies inside in other arithmetic too


def softmax(scores):
    most = max(scores)
    exps = [math.exp(s - most) for s in scores]
    return [e / sum(exps) for e in exps]


def around(printed, unit):
    return printed - INNER * unit / 2, printed + INNER * unit / 2


def nine_digits(printed):
    """Unit of the last digit of a number printed as d.dddddddde+xx."""
    return 10.0 ** (math.floor(math.log10(abs(printed))) - 8)


def project(x, constraints, sweeps):
    """Moves x until low <= value <= high for every constraint; each is a function from x to (value, gradient)."""
    for sweep in range(sweeps):
        violated = 0
        for evaluate, low, high in constraints:
            value, gradient = evaluate(x)
            if low <= value <= high:
                continue
            violated += 1
            target = low + (0.01 if value < low else 0.99) * (high - low)
            norm = sum(g * g for g in gradient.values())
            for index, g in gradient.items():
                x[index] += (target - value) * g / norm
        if not violated:
            return
    raise SystemExit(f"{violated} constraints don't hold after {sweeps} sweeps")


def entry(index):
    return lambda x: (x[index], {index: 1.0})


def weighted_sum(indices, factors):
    return lambda x: (sum(f * x[i] for i, f in zip(indices, factors)), dict(zip(indices, factors)))


def weight(score_indices, j):
    def evaluate(x):
        w = softmax([x[s] for s in score_indices])
        return w[j], {s: w[j] * ((k == j) - w[k]) for k, s in enumerate(score_indices)}
    return evaluate


def output(score_indices, value_indices):
    def evaluate(x):
        w = softmax([x[s] for s in score_indices])
        o = sum(a * x[v] for a, v in zip(w, value_indices))
        gradient = {v: a for a, v in zip(w, value_indices)}
        gradient.update({s: a * (x[v] - o) for a, s, v in zip(w, score_indices, value_indices)})
        return o, gradient
    return evaluate


def mean_of(values):
    total = 0.0
    for v in values:
        total += v
    return total / len(values)


def variance_of(values):
    mean, total = mean_of(values), 0.0
    for v in values:
        total += (v - mean) * (v - mean)
    return total / len(values)


def statistics(indices, free, mean, variance):
    """Mean and variance of `indices`, almost (exactly() does the rest); only `free` ones are moved."""
    n = len(indices)

    def of_mean(x):
        return mean_of([x[i] for i in indices]), {i: 1 / n for i in free}

    def of_variance(x):
        values = [x[i] for i in indices]
        m = mean_of(values)
        return variance_of(values), {i: 2 * (x[i] - m) / n for i in free}
    return [(of_mean, mean - 1e-14, mean + 1e-14), (of_variance, variance - 1e-14, variance + 1e-14)]


def eliminate(a, b):
    """Solves a * x = b by elimination with pivots."""
    rows = [list(row) + [value] for row, value in zip(a, b)]
    n = len(rows)
    for c in range(n):
        pivot = max(range(c, n), key=lambda r: abs(rows[r][c]))
        rows[c], rows[pivot] = rows[pivot], rows[c]
        for r in range(n):
            if r != c:
                factor = rows[r][c] / rows[c][c]
                rows[r] = [v - factor * p for v, p in zip(rows[r], rows[c])]
    return [rows[r][n] / rows[r][r] for r in range(n)]


def exactly(values, mean, variance, seed):
    """Kicks of some units in the last place until both are met to the last bit."""
    draw = random.Random(seed)
    for _ in range(2_000_000):
        a, b = draw.sample(range(len(values)), 2)
        off_mean = mean - mean_of(values)
        off_variance = variance - variance_of(values)
        if off_mean == 0 and off_variance == 0:
            return values
        # Two entries: sum of the kicks for the mean, their product with the entries for the variance.
        n, spread = len(values), values[a] - values[b]
        if abs(spread) < 0.5:
            continue
        kick_a = (n * off_variance / 2 - n * off_mean * (values[b] - mean)) / spread
        values[a] += kick_a + draw.choice([-1, 0, 1]) * 1e-17
        values[b] += n * off_mean - kick_a + draw.choice([-1, 0, 1]) * 1e-17
    raise SystemExit("mean and variance were not met")


def rows_of(values, columns):
    return [values[n:n + columns] for n in range(0, len(values), columns)]


def first_principles(w):
    tokens, dim, unit = range(4), range(16), 1e-8
    score = lambda i, j: ("s", i, j)
    v = lambda j, c: ("v", j, c)
    x = {score(i, j): w["scaled_scores"][i][j] for i in tokens for j in tokens}
    x.update({v(j, c): 0.0 for j in tokens for c in dim})
    constraints = [(entry(score(i, j)), *around(w["scaled_scores"][i][j], unit)) for i in tokens for j in tokens]
    for i in tokens:
        full = [score(i, j) for j in tokens]
        past = full[:i + 1]
        constraints += [(weight(full, j), *around(w["weights"][i][j], unit)) for j in tokens]
        constraints += [(weight(past, j), *around(w["causal_weights"][i][j], unit)) for j in range(i + 1) if i > 0]
        constraints.append((weighted_sum(full, [1.0] * 4), *around(w["row_sums"][i], unit)))
        constraints.append((weighted_sum([score(k, i) for k in tokens], [1.0] * 4), *around(w["column_sums"][i], unit)))
        for c, printed in enumerate((w["output"] + [w["output_row_3_first_numbers"]])[i]):
            constraints.append((output(full, [v(j, c) for j in tokens]), *around(printed, unit)))
        if i < 3:
            for c, printed in enumerate((w["causal_output"] + [w["causal_output_row_2_first_numbers"]])[i]):
                constraints.append((output(past, [v(j, c) for j in range(i + 1)]), *around(printed, nine_digits(printed))))
    all_v = [v(j, c) for j in tokens for c in dim]
    (q_mean, q_variance, _), (k_mean, k_variance, _), (v_mean, v_variance, _) = w["statistics"]
    constraints += statistics(all_v, all_v, v_mean, v_variance)
    project(x, constraints, 200_000)

    exact_v = exactly([x[n] for n in all_v], v_mean, v_variance, 3)

    # q within its printed digits.
    all_q = [("q", i, t) for i in tokens for t in dim]
    x.update({q: w["Q"][q[1]][q[2]] for q in all_q})
    q_constraints = [(entry(q), *around(x[q], unit)) for q in all_q] + statistics(all_q, all_q, q_mean, q_variance)
    project(x, q_constraints, 10_000)
    exact_q = exactly([x[q] for q in all_q], q_mean, q_variance, 2)
    rows = rows_of(exact_q, 16)

    # k so that q * k^T / 4 gives the scores. Of row 0 twelve numbers are printed: four equations for the other four.
    k = lambda j, t: ("k", j, t)
    start = random.Random(1)
    x.update({k(j, t): start.gauss(0, 1) for j in tokens for t in dim})
    known = w["K_first_numbers"]
    rest = [4 * x[score(i, 0)] - sum(a * b for a, b in zip(rows[i], known)) for i in tokens]
    for t, value in enumerate(known + eliminate([row[12:] for row in rows], rest)):
        x[k(0, t)] = value
    k_constraints = [(weighted_sum([k(j, t) for t in dim], [value / 4 for value in rows[i]]),
                      x[score(i, j)] - 1e-11, x[score(i, j)] + 1e-11) for i in tokens for j in tokens if j > 0]
    all_k = [k(j, t) for j in tokens for t in dim]
    k_constraints += statistics(all_k, all_k[16:], k_mean, k_variance)
    project(x, k_constraints, 100_000)
    exact_k = exactly([x[n] for n in all_k], k_mean, k_variance, 4)
    return {"Q": rows_of(exact_q, 16), "K": rows_of(exact_k, 16), "V": rows_of(exact_v, 16)}


def scale_mask_softmax(w):
    n = range(5)
    x = {(i, j): w["raw_scores"][i][j] for i in n for j in n}
    constraints = []
    for i in n:
        for j in n:
            constraints.append((entry((i, j)), *around(w["raw_scores"][i][j], 0.01)))
            constraints.append((weighted_sum([(i, j)], [0.125]), *around(w["scaled_scores"][i][j], 0.001)))
        for j in range(i + 1):
            constraints.append((weighted_sum([(i, j)], [0.125]), *around(w["masked_scores"][i][j], 0.01)))

            def scaled_weight(x, i=i, j=j):
                scaled = {(i, k): 0.125 * x[(i, k)] for k in range(i + 1)}
                value, gradient = weight([(i, k) for k in range(i + 1)], j)(scaled)
                return value, {key: 0.125 * g for key, g in gradient.items()}
            if i > 0:
                constraints.append((scaled_weight, *around(w["weights"][i][j], 0.001)))
    # Printed before scaling, over n - 1; the one after follows from it.
    _, (over_n, _, _) = statistics(list(x), list(x), 0, 0)

    def variance_before(x):
        value, gradient = over_n(x)
        return value * 25 / 24, {i: g * 25 / 24 for i, g in gradient.items()}
    constraints.append((variance_before, *around(w["variance_before"], 0.01)))
    project(x, constraints, 100_000)
    return {"raw_scores": [[round(x[(i, j)], 6) for j in n] for i in n]}


def main():
    walks = json.loads((HERE / "walkthroughs.json").read_text())
    solved = {name: solve(walks[name]) for name, solve in
              {"first_principles": first_principles, "scale_mask_softmax": scale_mask_softmax}.items()}
    rows = lambda matrix: "[\n   " + ",\n   ".join(json.dumps(row) for row in matrix) + "]"
    walks = [f' "{name}": {{\n' + ",\n".join(f'  "{key}": {rows(matrix)}' for key, matrix in found.items()) + "}"
             for name, found in solved.items()]
    (HERE / "solved.json").write_text("{\n" + ",\n".join(walks) + "\n}\n")


if __name__ == "__main__":
    main()
