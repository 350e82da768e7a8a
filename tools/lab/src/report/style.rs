//! The style of the HTML page: light and dark by the reader's own setting, from a phone's width up.

/// The sheet.
pub(super) const SHEET: &str = "\
:root{color-scheme:light dark;--paper:#f6f7f9;--card:#fff;--ink:#14181f;--soft:#5b6472;--rule:#dde1e7;--grid:#e8ebf0;\
--good:#0f7b4f;--bad:#b42318;--warn:#8a5a00;--warnpaper:#fff6e0;\
--s0:#64748b;--s1:#2563eb;--s2:#d9660a;--s3:#0d8f80;--s4:#b5279b;--s5:#6d4bd8;--s6:#a16207;--s7:#c2273f}\
@media(prefers-color-scheme:dark){:root{--paper:#0f1216;--card:#171b21;--ink:#e8ebf0;--soft:#9aa4b2;--rule:#2b323c;--grid:#252b34;\
--good:#4cc38a;--bad:#ff8a7a;--warn:#f2c15a;--warnpaper:#2a2415;\
--s0:#94a3b8;--s1:#6ea8ff;--s2:#ff9a4d;--s3:#3fcdbb;--s4:#ee7fd8;--s5:#a894ff;--s6:#e0b341;--s7:#ff7d8f}}\
*{box-sizing:border-box}\
body{margin:0;background:var(--paper);color:var(--ink);font:15px/1.5 system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif;\
-webkit-text-size-adjust:100%}\
main{max-width:1120px;margin:0 auto;padding:32px 24px 48px}\
h1{font-size:26px;line-height:1.25;margin:0 0 6px;letter-spacing:-.01em;overflow-wrap:anywhere}\
h2{font-size:18px;margin:0 0 4px}\
p{margin:0 0 10px}\
.lead{color:var(--soft);margin-bottom:22px}\
.note{color:var(--soft);font-size:13.5px;max-width:78ch}\
section,.tile{background:var(--card);border:1px solid var(--rule);border-radius:10px}\
section{padding:20px 22px;margin:18px 0;min-width:0}\
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(200px,1fr));gap:14px}\
.tile{padding:14px 16px;border-top:3px solid var(--tint)}\
.tile span{display:block;color:var(--soft);font-size:13px;overflow-wrap:anywhere}\
.tile b{display:block;font-size:25px;letter-spacing:-.02em;font-variant-numeric:tabular-nums;margin:2px 0}\
.warnings{background:var(--warnpaper);border-color:var(--warn)}\
.warnings ul{margin:6px 0 0;padding-left:20px}.warnings li{overflow-wrap:anywhere}\
.scroll{overflow-x:auto;margin-top:12px}\
table{border-collapse:collapse;width:100%;font-size:13.5px;font-variant-numeric:tabular-nums}\
th,td{padding:6px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid var(--rule)}\
th{color:var(--soft);font-weight:600}\
th:first-child,td:first-child{text-align:left;padding-left:0}\
tr:last-child td{border-bottom:0}\
dl{display:grid;grid-template-columns:minmax(110px,max-content) 1fr;gap:5px 18px;margin:8px 0 0;font-size:13.5px}\
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}\
figure{margin:12px 0 0}\
svg{display:block;max-width:100%;height:auto}\
.narrow{display:none}\
@media(max-width:719px){main{padding:20px 12px 32px}section{padding:16px 14px}h1{font-size:22px}.wide{display:none}.narrow{display:block}\
dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:7px}}\
figcaption{display:flex;flex-wrap:wrap;gap:4px 16px;font-size:13px;color:var(--soft);margin-top:6px}\
figcaption i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:6px;background:var(--tint);vertical-align:-1px}\
svg text{font:12px system-ui,-apple-system,\"Segoe UI\",Roboto,\"DejaVu Sans\",sans-serif;fill:var(--soft)}\
svg .name{fill:var(--ink);font-size:13px;font-weight:600}svg .value{fill:var(--ink);font-size:13px;font-variant-numeric:tabular-nums}\
svg .halo{stroke:var(--card);stroke-width:4px;paint-order:stroke;stroke-linejoin:round}\
svg .axis{fill:var(--soft);font-style:italic}\
.grid{stroke:var(--grid);stroke-width:1}.zero{stroke:var(--soft);stroke-width:1.2}\
.curve{fill:none;stroke:var(--tint);stroke-width:2;stroke-linejoin:round}\
.whisker{stroke:var(--tint);stroke-width:2.5}.fill{fill:var(--tint)}.faint{opacity:.38}\
.mark{stroke:var(--card);stroke-width:1.5}\
.s0{--tint:var(--s0)}.s1{--tint:var(--s1)}.s2{--tint:var(--s2)}.s3{--tint:var(--s3)}\
.s4{--tint:var(--s4)}.s5{--tint:var(--s5)}.s6{--tint:var(--s6)}.s7{--tint:var(--s7)}\
.OK{color:var(--good);font-weight:600}.REGRESSED{color:var(--bad);font-weight:600}.INCONCLUSIVE{color:var(--warn);font-weight:600}\
footer{color:var(--soft);font-size:13px;margin-top:24px}\
@media print{body{background:#fff}section,.tile{break-inside:avoid}}";
