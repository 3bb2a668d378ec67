"""secret: fields that are encrypted in the database, and how a secret is shown.

settings.FIELD_KEYS lists the keys: the first encrypts, all decrypt, so a key is
changed by putting a new one in front. A value that was read is masked from then on in
all that is stored, for as long as `mask` says.
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import models

from audit import mask as masking
from audit import text

# A shorter key of an installation is a placeholder ("development"), and a word.
LONG = 20  # characters

_of_settings: set[masking.Secret] = set()  # known as long as the process


class UnreadableSecret(Exception):
    """None of FIELD_KEYS opens this value."""


class EncryptedTextField(models.TextField):  # type: ignore[type-arg]
    """Text that stands encrypted in the database. Cannot be searched or ordered by."""

    description = "Encrypted text"

    def __init__(self, *args: Any, masked: bool = True, **kwargs: Any) -> None:
        """`masked=False`: a document that holds secrets; its lines are no secrets."""
        super().__init__(*args, **kwargs)
        self.masked = masked

    def deconstruct(self) -> Any:
        """For migrations."""
        name, path, args, kwargs = super().deconstruct()
        return name, path, args, kwargs if self.masked else {**kwargs, "masked": False}

    def get_prep_value(self, value: Any) -> Any:
        """Encrypt; the empty text stays empty."""
        if not value:
            return value
        if self.masked:
            text.register_secret(str(value))
        return _fernet(tuple(settings.FIELD_KEYS)).encrypt(str(value).encode()).decode()

    def from_db_value(self, value: Any, *_: Any) -> Any:
        """Decrypt. Raises UnreadableSecret."""
        if not value:
            return value
        try:
            plain = _fernet(tuple(settings.FIELD_KEYS)).decrypt(value.encode()).decode()
        except InvalidToken:
            raise UnreadableSecret(
                f"{self.model._meta.label}.{self.name} cannot be read: it was encrypted with a key "
                "that FIELD_KEY no longer lists; put the old key back behind the new one"
            ) from None
        if self.masked:
            text.register_secret(plain)
        return plain


class SecretsLater[M: models.Model](models.Manager[M]):
    """Reads an encrypted field only where it is used: one that no key opens stops nothing else."""

    def get_queryset(self) -> models.QuerySet[M]:
        """Without them; reading the attribute fetches it."""
        fields = self.model._meta.concrete_fields
        later = [each.name for each in fields if isinstance(each, EncryptedTextField)]
        return super().get_queryset().defer(*later)


def mask(value: str) -> str:
    """How a secret is shown: its last four characters where that gives little away."""
    return masking.MASK + (value[-4:] if len(value) >= 12 else "")


def register_settings() -> None:
    """Mask what the settings keep secret: keys, and passwords of databases and mailers."""
    known = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS, *settings.FIELD_KEYS]
    for value in known:
        if len(value) >= LONG:
            text.register_secret(value, known=_of_settings)
    for part in (settings.DATABASES, getattr(settings, "MAILERS", {})):
        for value, beside in _passwords(part):
            if value not in beside:
                text.register_secret(value, known=_of_settings)


def _passwords(part: Any) -> Iterator[tuple[str, set[str]]]:
    """Each password of nested settings, with the other texts that stand beside it.

    A password that is also the user's or the database's name is no secret, and masking
    it would take that name out of every log.
    """
    if not isinstance(part, dict):
        return
    for key, value in part.items():
        if isinstance(value, str) and value and masking.telling_key(str(key)):
            yield (
                value,
                {
                    other
                    for name, other in part.items()
                    if isinstance(other, str) and name != key
                },
            )
        yield from _passwords(value)


@cache
def _fernet(keys: tuple[str, ...]) -> MultiFernet:
    try:
        return MultiFernet([Fernet(key) for key in keys])
    except ValueError as problem:
        raise ImproperlyConfigured(f"FIELD_KEY is no Fernet key: {problem}") from None
