#include "cli/install_options.h"

#include "setup/spec.h"

namespace lockstep::cli {
namespace {

Table make_install_table() {
  return {
      .program = "lockstep install",
      .summary =
          "Puts packages into the environment of a project on a host, or on all nodes of a\n"
          "cluster at once: a virtual environment of the project's own, which is made when\n"
          "it is first needed. What has not changed since is skipped.\n\n"
          "  lockstep install gpus reqs:./requirements.txt pip:./\n"
          "  lockstep install gpus 'torch --index-url https://download.pytorch.org/whl/cu121'\n\n"
          "A SPEC is one of\n"
          "  NAME [ARGS]        a package as pip names it; pip's arguments may follow\n"
          "  pip:./ [ARGS]      a folder of the project, built and installed (-e ./: editable)\n"
          "  pip:NAME [ARGS]    as without pip:\n"
          "  reqs:FILE [ARGS]   a requirements file, or the folder of requirements.txt\n"
          "  conda:FILE         a conda environment file\n"
          "  git:URL[@REF]      a repository that has a Python project\n"
          "  local:DIR          a folder that is only put on the path\n"
          "  wheel:FILE         a wheel, which is copied to the hosts\n"
          "Files are relative to the project's top folder. Words are split as a shell does;\n"
          "put what has spaces into quotes of its own.",
      .epilog =
          "Exit code: 0, the code of the step that failed, 255 where a host is not reached,\n"
          "2 for bad input; of several nodes the first that is not 0. The steps behind a\n"
          "failed one are not begun.\n",
      .operands = Operands::names,
      .groups =
          {{"Environment",
            {
                {.name = "venv",
                 .field = into<&InstallOptions::venv>,
                 .metavar = "DIR",
                 .help = "this virtual environment, made if it is not there; relative to "
                         "the project; auto: the project's own",
                 .shown_default = "what the project has, else its own"},
                {.name = "conda",
                 .field = into<&InstallOptions::conda>,
                 .metavar = "NAME",
                 .help = "this conda environment, by name or folder; auto: the project's "
                         "own"},
                {.name = "system",
                 .field = into<&InstallOptions::system>,
                 .help = "no environment: the Python of the host itself"},
                {.name = "python",
                 .field = into<&InstallOptions::python>,
                 .metavar = "PATH",
                 .help = "interpreter there, for a new environment or with --system",
                 .shown_default = "python3"},
                {.name = "no-uv",
                 .field = into<&InstallOptions::no_uv>,
                 .help = "use pip also where uv is installed"},
            }},
           {"Options",
            {
                {.name = "project",
                 .field = into<&InstallOptions::project>,
                 .metavar = "DIR",
                 .help = "top folder of the project here",
                 .shown_default = "git's, else this folder"},
                {.name = "no-sync",
                 .field = into<&InstallOptions::no_sync>,
                 .help = "take the project's files as they are there; without it they are "
                         "synced first where a spec needs them"},
                {.name = "force", .field = into<&InstallOptions::force>, .help = "skip nothing"},
                {.name = "json", .field = into<&InstallOptions::json>, .help = "for programs"},
            }},
           place_group()},
      .shown_names = "HOST|CLUSTER SPEC..."};
}

}  // namespace

const Table& install_table() {
  static const Table table = make_install_table();
  return table;
}

Result<InstallOptions> install_options(const Parsed& parsed) {
  using Choice = setup::SetupRequest::Choice;
  InstallOptions options;
  fill(install_table(), parsed, options);
  fill(install_table(), parsed, options.places);
  if (parsed.names.empty())
    return fail(Errc::invalid_input, "no host is named", "write lockstep install HOST SPEC...");
  options.where = parsed.names.front();
  options.specs.assign(parsed.names.begin() + 1, parsed.names.end());
  if (options.specs.empty())
    return fail(Errc::invalid_input, "no spec is given",
                "write lockstep install " + options.where + " SPEC...");
  LOCKSTEP_TRY_ASSIGN(const auto specs, setup::parse_specs(options.specs));
  const int choices = (options.venv ? 1 : 0) + (options.conda ? 1 : 0) + (options.system ? 1 : 0);
  if (choices > 1)
    return fail(Errc::invalid_input, "more than one of --venv, --conda and --system is given",
                "give one of them");
  if ((options.venv && options.venv->empty()) || (options.conda && options.conda->empty()))
    return fail(Errc::invalid_input, "the environment's name is empty");
  for (const setup::Spec& each : specs)
    if (each.kind == setup::Spec::Kind::conda && (options.venv || options.system))
      return fail(Errc::invalid_input,
                  "'" + each.text + "' can't go into " +
                      (options.venv ? "a virtual environment" : "the Python of the host itself"),
                  "give --conda NAME, or none");
  if (options.venv) options.choice = Choice::venv;
  if (options.conda) options.choice = Choice::conda;
  if (options.system) options.choice = Choice::system;
  options.place = options.venv.value_or(options.conda.value_or(""));
  return options;
}

}  // namespace lockstep::cli
