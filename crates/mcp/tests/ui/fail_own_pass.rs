use gate::Pass;
use mcp::upstream::{Frame, Upstream};

struct Forged(Frame);

impl Pass for Forged {
    type Request = Frame;
    type Open = ();
    fn spend(self) -> (Frame, ()) {
        (self.0, ())
    }
}

fn send(upstream: &mut Upstream, frame: Frame) {
    let _ = upstream.send(Forged(frame));
}

fn main() {
    let _ = send;
}
