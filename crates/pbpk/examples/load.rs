//! scratch
#[path = "../tests/common/mod.rs"]
mod common;
use std::time::Instant;
fn main() {
    let mut out = std::io::stdout();
    use std::io::Write;
    for f in std::env::args().skip(1) {
        let t = Instant::now();
        let model = match pbpk::read::file(&common::data(&f), &Default::default()) {
            Ok(m) => m,
            Err(e) => {
                writeln!(out, "{f}: {e}").unwrap();
                continue;
            }
        };
        let t_load = t.elapsed();
        let name = f
            .split('/')
            .last()
            .unwrap()
            .split(".pkml")
            .next()
            .unwrap()
            .split(".xml")
            .next()
            .unwrap()
            .split(".simmodel")
            .next()
            .unwrap()
            .to_owned();
        let xmlref = f.contains(".simmodel.");
        let t = Instant::now();
        let tol = model.solver;
        let n = model.states().len();
        let inst = common::instance(model);
        let t_comp = t.elapsed();
        let mut best = f64::INFINITY;
        let mut res = None;
        for _ in 0..3 {
            let t = Instant::now();
            res = Some(pbpk::run::run(&inst, &Default::default()));
            best = best.min(t.elapsed().as_secs_f64());
        }
        let tight = pbpk::run::run(
            &inst,
            &pbpk::run::RunOptions {
                rel_tol: Some(1e-10),
                abs_tol: Some(tol.abs_tol * 1e-5),
                ..Default::default()
            },
        );
        let s = &inst.structure();
        write!(
            out,
            "{f}: n={n} nnz={} instr={:?} load {:?} compile {:?} run {:.2} ms ",
            s.jacobian_entries(),
            s.instructions(),
            t_load,
            t_comp,
            best * 1e3
        )
        .unwrap();
        let table = common::find_reference(&name).map(|mut t| {
            if xmlref {
                for n in t.names.iter_mut().skip(1) {
                    *n = format!("S|{n}");
                }
            }
            t
        });
        for (k, r) in [("file", res.unwrap()), ("tight", tight)] {
            match r {
                Ok(r) => {
                    let st = r.statistics;
                    write!(
                        out,
                        " {k}: steps {} rhs {} jac {} fac {} etf {} cf {}",
                        st.steps,
                        st.rhs,
                        st.jacobians,
                        st.factorisations,
                        st.error_test_failures,
                        st.convergence_failures
                    )
                    .unwrap();
                    if let Some(t) = &table {
                        match common::deviation(&r, t, tol.abs_tol) {
                            Ok(d) => write!(out, " d={:.2e} [{}]", d.worst, d.column).unwrap(),
                            Err(e) => write!(out, " BAD {e}").unwrap(),
                        }
                    }
                }
                Err(e) => write!(out, " {k}: ERR {e}").unwrap(),
            }
        }
        writeln!(out).unwrap();
    }
}
