use gate::Pass;
use mcp::upstream::{Frame, Link};

struct Forged(Frame);

impl Pass for Forged {
    type Request = Frame;
    type Open = ();
    fn spend(self) -> (Frame, ()) {
        (self.0, ())
    }
}

fn send(link: &Link, frame: Frame) {
    let _ = link.send(Forged(frame));
}

fn main() {
    let _ = send;
}
