"""Writes m3.json: observations of C = D/V exp(-k t), some below a limit, with the optimum that scipy finds.

Run with a Python that has scipy; the tests read m3.json alone.
"""

import json
import pathlib

import numpy as np
import scipy
from scipy.optimize import minimize
from scipy.stats import norm

DOSE, TRUE_K, TRUE_V = 100.0, 0.02, 10.0


def curve(t, k, v):
    return DOSE / v * np.exp(-k * t)


def deviation(kind, f, sigmas):
    if kind == "proportional":
        return sigmas[0] * f
    if kind == "combined":
        return np.sqrt(sigmas[0] ** 2 + (sigmas[1] * f) ** 2)
    return np.full_like(f, sigmas[0])


def objective(x, kind, t, y, below):
    """-2 log likelihood; a value below the limit y has the probability that the true one lies there."""
    k, v, *sigmas = np.exp(x)
    f = curve(t, k, v)
    s = deviation(kind, f, sigmas)
    if kind == "log-normal":
        observed = norm.logpdf(np.log(y), np.log(f), s) - np.log(y)
        censored = norm.logcdf((np.log(y) - np.log(f)) / s)
    else:
        observed = norm.logpdf(y, f, s)
        censored = norm.logcdf((y - f) / s)
    return -2 * np.sum(np.where(below, censored, observed))


def case(kind, seed):
    random = np.random.default_rng(seed)
    t = np.sort(random.uniform(1, 150, 40))
    f = curve(t, TRUE_K, TRUE_V)
    truth = {"additive": [0.3], "proportional": [0.15], "combined": [0.2, 0.1], "log-normal": [0.2]}[kind]
    if kind == "log-normal":
        y, limit = f * np.exp(truth[0] * random.standard_normal(t.size)), 1.2
    else:
        y, limit = f + deviation(kind, f, truth) * random.standard_normal(t.size), 1.2
    below = y < limit
    y = np.where(below, limit, y)
    start = np.log([TRUE_K, TRUE_V, *truth])
    found = minimize(objective, start, (kind, t, y, below), "Nelder-Mead",
                     options={"xatol": 1e-11, "fatol": 1e-13, "maxiter": 20000, "maxfev": 20000})
    found = minimize(objective, found.x, (kind, t, y, below), "Nelder-Mead",
                     options={"xatol": 1e-11, "fatol": 1e-13, "maxiter": 20000, "maxfev": 20000})
    k, v, *sigmas = np.exp(found.x)
    return {"kind": kind, "times": t.tolist(), "values": y.tolist(), "below": below.tolist(),
            "k": k, "v": v, "sigmas": sigmas, "objective": found.fun}


cases = [case(kind, seed) for seed, kind in enumerate(["additive", "proportional", "combined", "log-normal"])]
text = json.dumps({"scipy": scipy.__version__, "cases": cases}, indent=1)
(pathlib.Path(__file__).parent / "m3.json").write_text(text + "\n")
