#include "slurm/pyxis_image.h"

#include <gtest/gtest.h>

namespace lockstep::slurm {
namespace {

TEST(PyxisImage, MeansTheSameImage) {
  EXPECT_EQ(image_of_pyxis("ubuntu:22.04"), "docker://ubuntu:22.04");
  EXPECT_EQ(image_of_pyxis("docker://ubuntu"), "docker://ubuntu");
  EXPECT_EQ(image_of_pyxis("nvcr.io#nvidia/pytorch:24.05-py3"),
            "docker://nvcr.io/nvidia/pytorch:24.05-py3");
  EXPECT_EQ(image_of_pyxis("docker://nvcr.io#nvidia/pytorch"), "docker://nvcr.io/nvidia/pytorch");
  EXPECT_EQ(image_of_pyxis("me@nvcr.io#nvidia/pytorch"), "docker://nvcr.io/nvidia/pytorch");
  EXPECT_EQ(image_of_pyxis("a@sha256:1"), "docker://a@sha256:1");
  EXPECT_EQ(image_of_pyxis("podman://mine:1"), "mine:1");
  EXPECT_EQ(image_of_pyxis("dockerd://mine"), "mine");
  for (const char* path : {"/shared/a.sqsh", "./a", "../b/c.sqsh", "team.sqsh"})
    EXPECT_EQ(image_of_pyxis(path), path);
}

}  // namespace
}  // namespace lockstep::slurm
