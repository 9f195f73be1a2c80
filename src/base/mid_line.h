// Remembers that the terminal's last line has no end yet, such as a job's progress bar that this
// process passes on. The next message must begin a line of its own. Thread-safe.
#pragma once

namespace lockstep {

void set_mid_line(bool mid_line);
// Ends such a line. Call it before a message is written to stderr; log::write() does.
void end_line();

}  // namespace lockstep
