// Rows of `lockstep run`: what becomes of the workers' output.
#include "cli/run_groups.h"

namespace lockstep::cli {

Group logs_group() {
  return {
      "Output and logs",
      {
          {.name = "log-dir",
           .field = into<&Raw::log_dir>,
           .metavar = "DIR",
           .help = "where log files go; /dev/null: none",
           .shown_default = "/tmp/torchelastic_*",
           .env = "PET_LOG_DIR"},
          {.name = "redirects",
           .field = into<&Raw::redirects>,
           .metavar = "WHAT",
           .help = "to files only: 0 none, 1 stdout, 2 stderr, 3 both; or by local rank 0:3,1:2",
           .shown_default = "0",
           .env = "PET_REDIRECTS",
           .letter = 'r'},
          {.name = "tee",
           .field = into<&Raw::tee>,
           .metavar = "WHAT",
           .help = "to files and console, like --redirects",
           .shown_default = "0",
           .env = "PET_TEE",
           .letter = 't'},
          {.name = "log-line-prefix-template",
           .field = into<&Raw::log_line_prefix_template>,
           .metavar = "TEXT",
           .help =
               "prefix of tee'd lines: ${role_name}, ${local_rank}, ${rank}, ${hostname}, ${time}",
           .env = "PET_LOG_LINE_PREFIX_TEMPLATE"},
          {.name = "log-prefix",
           .field = into<&Raw::log_prefix>,
           .metavar = "STYLE",
           .help = "[default0]: or [default 0], or the latter after ${time}",
           .shown_default = "torchrun",
           .choices = {"torchrun", "readable", "time"},
           .own = true},
          {.name = "log-max-size",
           .field = into<&Raw::log_max_size>,
           .metavar = "SIZE",
           .help = "as 100M: where stdout.log becomes stdout.log.1 and so on; 5 are kept",
           .shown_default = "no limit",
           .own = true},
          {.name = "local-ranks-filter",
           .field = into<&Raw::local_ranks_filter>,
           .metavar = "LIST",
           .help = "local ranks shown on the console, as 0,1; rank:3 is a global rank",
           .shown_default = "all",
           .env = "PET_LOCAL_RANKS_FILTER"},
          {.name = "duplicate-stdout-filters",
           .field = into<&Raw::duplicate_stdout_filters>,
           .metavar = "LIST",
           .help =
               "tee'd lines with one of these texts also go to filtered_stdout.log; ,, is a comma",
           .env = "PET_DUPLICATE_STDOUT_FILTERS"},
          {.name = "duplicate-stderr-filters",
           .field = into<&Raw::duplicate_stderr_filters>,
           .metavar = "LIST",
           .help = "same, for stderr",
           .env = "PET_DUPLICATE_STDERR_FILTERS"},
          {.name = "logs-specs",
           .field = into<&Raw::logs_specs>,
           .metavar = "NAME",
           .help = "default; others are refused: they are Python plug-ins"},
      }};
}

}  // namespace lockstep::cli
