#include "slurm/carry.h"

#include "base/environment.h"
#include "host/identity.h"
#include "slurm/job_run.h"

namespace lockstep::slurm {

bool is_carried(Carry how, std::string_view host, std::string_view submitted_on) {
  if (how != Carry::unless_seen) return how == Carry::always;
  return submitted_on.empty() || submitted_on == host;
}

bool is_carried_here(Carry how) {
  return is_carried(how, host::hostname(), env_text("SLURM_SUBMIT_HOST"));
}

}  // namespace lockstep::slurm
