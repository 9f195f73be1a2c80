#include "slurm/pyxis_image.h"

#include <gtest/gtest.h>

#include <utility>

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

SrunContainer container(const std::vector<std::string>& words) {
  std::vector<PlacedWord> placed;
  placed.reserve(words.size());
  for (const std::string& each : words)
    placed.push_back({each, 1});
  return container_of_srun(read_srun_settings(placed).settings);
}

TEST(SrunContainer, OptionsOfPyxisBecomeOurs) {
  const SrunContainer all = container(
      {"-l", "--container-image", "nvcr.io#a/b:1", "--container-mounts=/data,out:/o:ro",
       "--container-workdir=/w", "--container-env=A,B", "--no-container-mount-home", "hostname"});
  EXPECT_EQ(all.why, "");
  EXPECT_EQ(all.run, (std::vector<std::string>{"--container=docker://nvcr.io/a/b:1",
                                               "--container-workdir=/w", "--container-env=A,B",
                                               "--container-mounts=/data:/data,out:/o:ro"}));
  EXPECT_TRUE(container({"-N2", "--no-container-mount-home"}).run.empty());
}

TEST(SrunContainer, WhatOnlyPyxisCanDoIsItsOwn) {
  for (const auto& [word, why] : std::vector<std::pair<const char*, const char*>>{
           {"--container-name=x", "srun --container-name is given"},
           {"--container-writable", "srun --container-writable is given"},
           {"--container=/bundle", "srun --container is given"},
           {"--container-mounts=/a:/b:ro+private",
            "srun --container-mounts=/a:/b:ro+private has flags of pyxis alone"},
           {"--container-mounts=/a:b", "srun --container-mounts=/a:b has flags of pyxis alone"}}) {
    EXPECT_EQ(container({"--container-image=x", "--container-workdir=/w", word}).why, why);
    EXPECT_TRUE(container({"--container-image=x", "--container-workdir=/w", word}).run.empty());
  }
  EXPECT_EQ(container({"--container-workdir=/w"}).why,
            "srun has options of a container, but no --container-image");
  EXPECT_EQ(container({"--container-image=x"}).why,
            "srun --container-image without --container-workdir starts in the image's own folder");
}

}  // namespace
}  // namespace lockstep::slurm
