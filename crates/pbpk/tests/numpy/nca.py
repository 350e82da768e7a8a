"""Parameters of observed profiles with NumPy, written from their definitions: profiles on standard input, values out."""

import json
import sys

import numpy as np


def usable(profile):
    """Missing left out; below the limit: 0 before the first quantified value, left out after it."""
    order = np.argsort(np.array(profile["times"]), kind="stable")
    t = np.array(profile["times"], float)[order]
    c = np.array([np.nan if v is None else v for v in profile["values"]], float)[order]
    blq = np.array(profile["below"], bool)[order]
    quantified = np.isfinite(c) & ~blq
    first = np.argmax(quantified) if quantified.any() else len(t)
    c[blq & (np.arange(len(t)) < first)] = 0.0
    keep = np.isfinite(c) & ~(blq & (np.arange(len(t)) > first))
    return t[keep], c[keep]


def trapezoid(t, c):
    return float(np.sum(np.diff(t) * (c[1:] + c[:-1]) / 2.0)) if len(t) > 1 else 0.0


def terminal(t, c):
    n = max(3, len(t) // 10)
    if len(t) < n or np.any(c[-n:] <= 0):
        return np.nan, np.nan
    if np.ptp(c[-n:]) == 0:
        return np.nan, np.nan
    slope, intercept = np.polyfit(t[-n:] - t[-1], np.log(c[-n:]), 1)
    return (-slope, np.exp(intercept)) if slope < 0 else (np.nan, np.nan)


def nearest(t, time):
    distance = np.abs(t - time)
    return int(np.flatnonzero(distance == distance.min())[-1])


def cut(t, c, start, end):
    a, b = nearest(t, start), nearest(t, end)
    return (t[a : b + 1], c[a : b + 1]) if a < b else (None, None)


def residence(t, c, infusion):
    rate, fitted = terminal(t, c)
    infinite = trapezoid(t, c) + fitted / rate
    moment = trapezoid(t, t * c) + fitted / rate * (t[-1] + 1 / rate)
    return moment / infinite - infusion / 2


def window(t, c, start, end):
    """Grid points strictly inside, and linear values at both ends."""
    if start < t[0] * (1 - 1e-12) or end > t[-1] * (1 + 1e-12):
        return None, None
    inside = (t > start) & (t < end)
    times = np.concatenate([[start], t[inside], [end]])
    return times, np.interp(times, t, c)


def peak(values):
    return int(np.argmax(values))


def single(t, c, infusion):
    rate, fitted = terminal(t, c)
    area = trapezoid(t, c)
    return {
        "C_max": c.max(), "t_max": t[peak(c)], "C_tEnd": c[-1], "AUC_tEnd": area,
        "AUC_inf": area + fitted / rate, "FractionAucLastToInf": (fitted / rate) / (area + fitted / rate),
        "Thalf": np.log(2) / rate, "MRT": residence(t, c, infusion),
        "AUC_inf_obs": area + c[-1] / rate, "FractionAucLastToInf_obs": (c[-1] / rate) / (area + c[-1] / rate),
    }


def multiple(t, c, doses, infusion):
    found = {"C_max": c.max(), "t_max": t[peak(c)], "C_tEnd": c[-1], "AUC_tEnd": trapezoid(t, c)}
    names = ["C_max_tD1_tD2", "t_max_tD1_tD2", "C_trough_tD2", "AUC_tD1_tD2", "AUC_inf_tD1", "MRT", "Thalf"]
    found.update(dict.fromkeys(names, np.nan))
    a, b = cut(t, c, doses[0], doses[1])
    if a is not None:
        rate, fitted = terminal(a, b)
        values = [b.max(), a[peak(b)], b[-1], trapezoid(a, b), trapezoid(a, b) + fitted / rate,
                  residence(a, b, infusion), np.log(2) / rate]
        found.update(zip(names, values))
    names = ["C_trough_tDLast", "AUC_tDLast_minus_1_tDLast"]
    a, b = cut(t, c, doses[-2], doses[-1])
    found.update(zip(names, [np.nan] * 2 if a is None else [b[-1], trapezoid(a, b)]))
    names = ["C_max_tDLast_tEnd", "t_max_tDLast_tEnd", "AUC_inf_tDLast", "Thalf_tDLast_tEnd"]
    a, b = cut(t, c, doses[-1], t[-1])
    if a is None:
        found.update(dict.fromkeys(names, np.nan))
    else:
        rate, fitted = terminal(a, b)
        found.update(zip(names, [b.max(), a[peak(b)], trapezoid(a, b) + fitted / rate, np.log(2) / rate]))
    tau = doses[-1] - doses[-2]
    first = window(t, c, doses[0], doses[0] + tau)
    whole = [window(t, c, d, d + tau) for d in doses]
    whole = [one for one in whole if one[0] is not None]
    area_first = np.nan if first[0] is None else trapezoid(*first)
    area, high, low = np.nan, np.nan, np.nan
    if whole:
        area, high, low = trapezoid(*whole[-1]), whole[-1][1].max(), whole[-1][1].min()
    with np.errstate(all="ignore"):
        mean = area / tau
        found.update({
            "tau": tau, "AUC_tau_tD1": area_first, "AUC_tau_ss": area, "C_max_ss": high, "C_min_ss": low,
            "C_avg_ss": mean, "R_ac": np.float64(area) / area_first, "PTF": (high - low) / np.float64(mean),
            "Swing": (high - low) / np.float64(low),
        })
    return found


def analyse(profile):
    t, c = usable(profile)
    doses = profile["doses"]
    with np.errstate(all="ignore"):
        found = single(t, c, profile["infusion"]) if len(doses) == 1 else multiple(t, c, doses, profile["infusion"])
    return {name: (float(v) if np.isfinite(v) else repr(float(v))) for name, v in found.items()}


json.dump([analyse(profile) for profile in json.load(sys.stdin)], sys.stdout)
