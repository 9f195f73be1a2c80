#include "cli/environment_options.h"

#include "setup/spec.h"

namespace lockstep::cli {

std::vector<Option> environment_rows() {
  return {
      {.name = "venv",
       .field = into<&EnvironmentOptions::venv>,
       .metavar = "DIR",
       .help = "this virtual environment, relative to the project; made if missing; auto: the "
               "project's own",
       .shown_default = "the project's environment, else a new environment"},
      {.name = "conda",
       .field = into<&EnvironmentOptions::conda>,
       .metavar = "NAME",
       .help = "this conda environment, by name or folder; auto: the project's "
               "own"},
      {.name = "system",
       .field = into<&EnvironmentOptions::system>,
       .help = "no environment: the Python of the host itself"},
  };
}

Result<ChosenEnvironment> chosen_environment(const EnvironmentOptions& options,
                                             const std::vector<std::string>& specs) {
  using Choice = setup::SetupRequest::Choice;
  LOCKSTEP_TRY_ASSIGN(const auto read, setup::parse_specs(specs));
  const int choices = (options.venv ? 1 : 0) + (options.conda ? 1 : 0) + (options.system ? 1 : 0);
  if (choices > 1)
    return fail(Errc::invalid_input, "more than one of --venv, --conda and --system is given",
                "give one of them");
  if ((options.venv && options.venv->empty()) || (options.conda && options.conda->empty()))
    return fail(Errc::invalid_input, "the environment's name is empty");
  // A conda file creates or changes a conda environment, so it fits no other kind.
  for (const setup::Spec& each : read)
    if (each.kind == setup::Spec::Kind::conda && (options.venv || options.system))
      return fail(Errc::invalid_input,
                  "'" + each.text + "' can't go into " +
                      (options.venv ? "a virtual environment" : "the Python of the host itself"),
                  "give --conda NAME, or none");
  ChosenEnvironment chosen{.place = options.venv.value_or(options.conda.value_or(""))};
  if (options.venv) chosen.choice = Choice::venv;
  if (options.conda) chosen.choice = Choice::conda;
  if (options.system) chosen.choice = Choice::system;
  return chosen;
}

}  // namespace lockstep::cli
