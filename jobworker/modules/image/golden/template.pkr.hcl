# An image that exists on paper only: Packer's file and null builders, so that it needs no
# cloud, no hypervisor and no network. To see the job worker work, and to test it.

variable "name" {
  type = string
}

variable "version" {
  type = string
}

variable "delay" {
  # seconds of each step
  type    = number
  default = 1
}

variable "fail" {
  # let the check fail, to see what that looks like
  type    = bool
  default = false
}

source "file" "rootfs" {
  content = "image ${var.name} ${var.version}, built offline\n"
  target  = "build/rootfs.img"
}

source "null" "check" {
  communicator = "none"
}

build {
  name    = "golden"
  sources = ["source.file.rootfs", "source.null.check"]

  # Values go in as environment, never as a part of the command.
  provisioner "shell-local" {
    environment_vars = ["DELAY=${var.delay}", "FAIL=${var.fail}"]
    inline = [
      "echo 'step 1, unpack'; sleep \"$DELAY\"",
      "echo 'step 2, compress'; sleep \"$DELAY\"",
    ]
  }

  provisioner "shell-local" {
    only             = ["null.check"]
    environment_vars = ["FAIL=${var.fail}"]
    inline           = ["if [ \"$FAIL\" = true ]; then echo 'no space left on device' >&2; exit 7; fi; echo ok"]
  }

  post-processor "checksum" {
    only           = ["file.rootfs"]
    checksum_types = ["sha256"]
    output         = "build/rootfs.sha256"
  }

  post-processor "manifest" {
    only   = ["file.rootfs"]
    output = "build/manifest.json"
  }
}
