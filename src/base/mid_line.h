// Remembers that the terminal's last line has no end yet, for example a job's progress bar passed
// on by this process. The next message must then begin a new line. Thread-safe.
#pragma once

namespace lockstep {

void set_mid_line(bool mid_line);
// Ends such a line. Call before writing a message to stderr. log::write() does.
void end_line();

}  // namespace lockstep
