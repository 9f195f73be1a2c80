// The options of pyxis in the form of `lockstep run --container`. Pure.
#pragma once

#include "slurm/sbatch_options.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::slurm {

// pyxis takes [docker://]NAME[:TAG] and [docker://][USER@]HOST#NAME[:TAG], dockerd://NAME and
// podman://NAME for an image of the node's own, and the path of a .sqsh file, which has a '/' in
// front of its name. Sources: pyxis' README; enroot's import command.
std::string image_of_pyxis(std::string_view value);

// The container of an srun call.
struct SrunContainer {
  std::vector<std::string> run = {};  // options for `lockstep run`; empty: no container
  std::string why = {};               // why only srun itself can start it; empty: Lockstep can
};
// Reads srun's options about containers, those of pyxis and Slurm's own --container. Source: pyxis'
// README.
SrunContainer container_of_srun(std::span<const Setting> settings);

// Returns whether the option of pyxis asks for what Lockstep's containers always are: without the
// home, the image's entrypoint, and root's rights.
bool is_always_so(std::string_view name);

// Returns whether srun's option is about containers.
bool is_about_container(std::string_view name);

}  // namespace lockstep::slurm
