# A database that exists on paper only: see ../../cluster/offline/main.tf.

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

variable "engine" {
  type    = string
  default = "postgresql"
}

variable "size_gb" {
  type    = number
  default = 10
}

variable "password" {
  type      = string
  sensitive = true
}

variable "delay" {
  description = "Seconds that the server takes to start."
  type        = number
  default     = 1
}

resource "terraform_data" "volume" {
  input = { database = var.name, size_gb = var.size_gb }
}

resource "terraform_data" "server" {
  input            = { name = var.name, engine = var.engine, volume = terraform_data.volume.id }
  triggers_replace = [var.engine]

  # Values go in as environment, never as a part of the command.
  provisioner "local-exec" {
    command = "echo \"starting $ENGINE\"; sleep \"$DELAY\"; echo \"$ENGINE accepts connections\""
    environment = {
      ENGINE = var.engine
      DELAY  = var.delay
    }
  }
}

resource "terraform_data" "account" {
  input = { server = terraform_data.server.id, user = var.name }
}

output "host" {
  value = "${var.name}.database.invalid"
}

output "url" {
  value     = "${var.engine}://${var.name}:${var.password}@${var.name}.database.invalid/${var.name}"
  sensitive = true
}
