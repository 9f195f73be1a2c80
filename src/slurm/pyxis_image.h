// The image of pyxis' --container-image in the form of `lockstep run --container`. Pure.
#pragma once

#include <string>
#include <string_view>

namespace lockstep::slurm {

// pyxis takes [docker://]NAME[:TAG] and [docker://][USER@]HOST#NAME[:TAG], dockerd://NAME and
// podman://NAME for an image of the node's own, and the path of a .sqsh file, which has a '/' in
// front of its name. Sources: pyxis' README; enroot's import command.
std::string image_of_pyxis(std::string_view value);

}  // namespace lockstep::slurm
