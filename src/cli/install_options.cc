#include "cli/install_options.h"

#include <algorithm>

namespace lockstep::cli {
namespace {

std::vector<Option> environment_group_rows(const std::vector<Option>& more) {
  std::vector<Option> rows = environment_rows();
  rows.insert(rows.end(), more.begin(), more.end());
  return rows;
}

Table make_install_table() {
  return {
      .program = "lockstep install",
      .summary = "Puts packages into a project's environment on hosts.",
      .examples =
          "lockstep install gpus reqs:./requirements.txt pip:./\n"
          "lockstep install gpus 'torch --index-url https://download.pytorch.org/whl/cu121'",
      .details =
          "The environment is a virtual environment of the project, made at the first use.\n"
          "Skips packages that have not changed.\n"
          "\n"
          "A SPEC is one of\n"
          "  NAME [ARGS]        a package as pip names it; pip's arguments may follow\n"
          "  pip:./ [ARGS]      a folder of the project, built and installed (-e ./: editable)\n"
          "  pip:NAME [ARGS]    as without pip:\n"
          "  reqs:FILE [ARGS]   a requirements file, or the folder of requirements.txt\n"
          "  conda:FILE         a conda environment file\n"
          "  git:URL[@REF]      a repository with a Python project\n"
          "  local:DIR          a folder, only added to the path\n"
          "  wheel:FILE         a wheel file, copied to the hosts\n"
          "Files are relative to the project's top folder. Words are split as a shell does;\n"
          "quote words with spaces once more.",
      .epilog =
          "Exit code: 0, the code of the step that failed, 255 where a host is not reached,\n"
          "2 for bad input; for several nodes the first code other than 0. A failed step\n"
          "ends the installation.\n",
      .operands = Operands::names,
      .groups =
          {{"Environment", environment_group_rows({
                               {.name = "python",
                                .field = into<&InstallOptions::python>,
                                .metavar = "PATH",
                                .help = "interpreter there, for a new environment or with --system",
                                .shown_default = "python3"},
                               {.name = "no-uv",
                                .field = into<&InstallOptions::no_uv>,
                                .help = "use pip also where uv is installed"},
                           })},
           {"Options",
            {
                {.name = "project",
                 .field = into<&InstallOptions::project>,
                 .metavar = "DIR[:DST]",
                 .help = "top folder of the project here, and the folder there",
                 .shown_default = "git's, else this folder"},
                {.name = "no-sync",
                 .field = into<&InstallOptions::no_sync>,
                 .help = "use the project's files on the host unchanged; by default they are "
                         "synced first where a spec needs them"},
                {.name = "overlay",
                 .field = into<&InstallOptions::overlay>,
                 .help = "put wheels into folders of their own, in front on the path: the "
                         "environment does not change, and these folders are imported first"},
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
  const auto is_wheel = [](const std::string& spec) { return spec.starts_with("wheel:"); };
  if (options.overlay && std::none_of(options.specs.begin(), options.specs.end(), is_wheel))
    return fail(Errc::invalid_input, "--overlay is for wheels, and no spec is wheel:FILE",
                "build one with lockstep wheel");
  fill(install_table(), parsed, options.environment);
  LOCKSTEP_TRY_ASSIGN(options.chosen, chosen_environment(options.environment, options.specs));
  return options;
}

}  // namespace lockstep::cli
