# A cluster that exists on paper only: nothing but Terraform's built-in resource, so that
# it needs no provider, no account and no network. To see the job worker work, and to test it.

terraform {
  required_version = ">= 1.4"
}

variable "name" {
  type = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}$", var.name))
    error_message = "name must be lower-case letters, digits and hyphens."
  }
}

variable "nodes" {
  type    = number
  default = 2
}

variable "delay" {
  description = "Seconds that a node takes to boot."
  type        = number
  default     = 1
}

variable "fail" {
  description = "Let the second node fail, to see what that looks like."
  type        = bool
  default     = false
}

resource "terraform_data" "network" {
  input = { cidr = "10.20.0.0/16", cluster = var.name }
}

resource "terraform_data" "node" {
  count            = var.nodes
  input            = { name = "${var.name}-${count.index}", network = terraform_data.network.id }
  triggers_replace = [var.name]

  # Values go in as environment, never as a part of the command.
  provisioner "local-exec" {
    command = var.fail && count.index == 1 ? "echo \"node $NODE: quota exceeded\" >&2; exit 3" : "echo \"booting node $NODE\"; sleep \"$DELAY\"; echo \"node $NODE ready\""
    environment = {
      NODE  = count.index
      DELAY = var.delay
    }
  }
}

output "node_ids" {
  value = terraform_data.node[*].id
}

output "nodes" {
  value = terraform_data.node[*].output.name
}

output "kubeconfig" {
  value     = "token-for-${var.name}"
  sensitive = true
}
