// Rows of `lockstep run` about those who are told what happens to the job.
#include "cli/run_groups.h"

namespace lockstep::cli {

Group events_group() {
  return {"Events",
          {
              {.name = "events",
               .field = into<&Raw::events>,
               .metavar = "FILE",
               .help = "append a line of JSON for each event of the job: rounds, starts, hangs, "
                       "failures, restarts, the end",
               .own = true},
              {.name = "notify",
               .field = into<&Raw::notify>,
               .metavar = "URL",
               .help = "post the start, failures, restarts, hangs and the end to this webhook, as "
                       "JSON or in Slack's form; else $LOCKSTEP_NOTIFY",
               .own = true},
              {.name = "notify-exec",
               .field = into<&Raw::notify_exec>,
               .metavar = "CMD",
               .help = "run this program for the same, with the JSON as its input; quotes count, "
                       "but no shell runs",
               .own = true},
          }};
}

}  // namespace lockstep::cli
