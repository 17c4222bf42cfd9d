"""Data sets by name: a card says what a set is, a build makes a store of it."""

from graphsys.datasets.recipes.build import build as build
from graphsys.datasets.recipes.card import Recipe as Recipe
from graphsys.datasets.recipes.card import RecipeFile as RecipeFile
from graphsys.datasets.recipes.card import names as names
from graphsys.datasets.recipes.card import show as show
